// The package style-mod with one difference: its rules go into a constructed style sheet of the document. In its own
// <style> element, the policy of the page (style-src 'self') refuses them.

import { StyleModule as Original } from "style-mod/src/style-mod.js";

const sheets = new WeakMap();

export class StyleModule extends Original {
  static mount(root, modules) {
    if (!sheets.has(root)) {
      sheets.set(root, { sheet: new CSSStyleSheet(), mounted: [] });
      root.adoptedStyleSheets.push(sheets.get(root).sheet);
    }
    const { sheet, mounted } = sheets.get(root);
    const fresh = [modules].flat().filter((module) => !mounted.includes(module));
    if (fresh.length === 0) return;
    mounted.unshift(...fresh);
    sheet.replaceSync(mounted.map((module) => module.getRules()).join("\n"));
  }
}
