// What CodeMirror shows in a text: widgets, and what an expression finds in the lines in view.

import { codePoints, count, el, MOST_SHOWN, UNSEEN_RUNS } from "./text.js";

/** Characters of the longest line that is shown to its end. */
const LONGEST = 5000;

/** A class of widgets that `draw(view)` makes; `key` says whether another one is the same. */
export function widgets({ WidgetType }) {
  return class extends WidgetType {
    constructor(key, draw, height = -1) {
      super();
      Object.assign(this, { key, draw, height });
    }

    get estimatedHeight() {
      return this.height;
    }

    eq({ key }) {
      return key === this.key;
    }

    toDOM(view) {
      return this.draw(view);
    }
  };
}

/** An extension that decorates each match of an expression within a line by `decoration(match)`. */
export function decorated({ MatchDecorator, ViewPlugin }, regexp, decoration, provide) {
  const decorator = new MatchDecorator({ regexp, decoration });
  const begin = (view) => ({
    found: decorator.createDeco(view),
    update(update) {
      this.found = decorator.updateDeco(update, this.found);
    },
  });
  return ViewPlugin.define(begin, { decorations: ({ found }) => found, provide });
}

/** An extension that shows characters that cannot be seen as their code points, which the cursor passes as one. */
export function unseen(cm) {
  const Widget = widgets(cm);
  const shown = ([run]) => cm.Decoration.replace({ widget: new Widget(run, () => el("span", { class: "unseen" }, codePoints(run))) });
  const asOne = (plugin) => cm.EditorView.atomicRanges.of((view) => view.plugin(plugin)?.found ?? cm.Decoration.none);
  return decorated(cm, UNSEEN_RUNS, shown, asOne);
}

/** An extension that shows only the beginning of a very long line: all of it could take seconds. */
export function shortened(cm) {
  const Widget = widgets(cm);
  const rest = ({ from, to, length }) => {
    const more = `… ${count(length - MOST_SHOWN, "more character")}`;
    return cm.Decoration.replace({ widget: new Widget(more, () => el("span", { class: "unseen" }, more)) }).range(from + MOST_SHOWN, to);
  };
  const cut = (found, doc, from, to) => {
    const add = [];
    for (let line = doc.lineAt(from); ; line = doc.lineAt(line.to + 1)) {
      if (line.length > LONGEST) add.push(rest(line));
      if (line.to >= to) break;
    }
    return found.update({ filterFrom: doc.lineAt(from).from, filterTo: doc.lineAt(to).to, filter: () => false, add });
  };
  return cm.StateField.define({
    create: ({ doc }) => cut(cm.Decoration.none, doc, 0, doc.length),
    update(found, { changes, newDoc }) {
      let moved = found.map(changes);
      changes.iterChangedRanges((_from, _to, from, to) => {
        moved = cut(moved, newDoc, from, to);
      });
      return moved;
    },
    provide: (field) => [cm.EditorView.decorations.from(field), cm.EditorView.atomicRanges.of(({ state }) => state.field(field))],
  });
}
