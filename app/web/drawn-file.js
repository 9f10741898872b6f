// How CodeMirror draws a file: keys and comments, the lines behind the chosen verdict, and warnings below theirs.

import { decorated, widgets } from "./marked-text.js";
import { AGENT, PARTS } from "./file-lines.js";
import { count, el } from "./text.js";
import { fixButton, wordsOf } from "./advice.js";

/** Pixels that a warning has until it is drawn: some do not have three lines. */
const HEIGHT = 64;

/** What there is to mark in a file that was not tested. */
export const UNMARKED = { verdict: null, group: null, lines: new Map(), decided: new Map(), warnings: [] };

/**
 * The extensions that draw a file, and `marking(doc, marks)`, the effect that shows what a test has found: the `verdict`, the
 * first and last line of its `group`, the `lines` behind it by a word each, how many verdicts each line has `decided`, and
 * the `warnings`. `pick(line)` is called when the user chooses the number of a line that decides, and `fix(line, warning)`
 * when they take the advice of a warning.
 */
export function drawnFile(cm, { pick, fix }) {
  const { Decoration, EditorView, RangeSet } = cm;
  const Widget = widgets(cm);
  const mark = cm.StateEffect.define();

  class LineNumber extends cm.GutterMarker {
    constructor(elementClass, many = 0) {
      super();
      Object.assign(this, { elementClass, many });
    }
  }

  const lineOf = (name) => Decoration.line({ class: name });
  const word = (text) => Decoration.widget({ widget: new Widget(text, () => el("span", { class: "tag" }, text)), side: 1 });

  function below(warning) {
    const { line, code, instead } = warning;
    const draw = (view) => {
      const button = instead && !view.state.readOnly && fixButton(warning);
      // A margin would shift the line numbers against the lines.
      const box = el("div", { class: "warning-line" }, el("p", { class: "warning", "data-code": code }, wordsOf(warning), button && [" ", button]));
      if (button) button.addEventListener("click", () => fix(view.state.doc.lineAt(view.posAtDOM(box)).number, warning));
      return box;
    };
    return Decoration.widget({ widget: new Widget(JSON.stringify([line, warning]), draw, HEIGHT), block: true, side: 2 });
  }

  function placed(doc, { verdict, group, lines, decided, warnings }) {
    const [drawn, numbers] = [[], []];
    const on = (line, ...decorations) => {
      if (line > doc.lines) return;
      const { from, to } = doc.line(line);
      for (const it of decorations) (it instanceof LineNumber ? numbers : drawn).push(it.range(it.spec?.widget ? to : from));
    };
    for (const [line, kind] of lines) on(line, lineOf(`tagged is-${kind} ${kind === "decides" ? verdict : ""}`), word(kind));
    if (group !== null && !lines.has(group[0])) on(group[0], lineOf("tagged"), word("group"));
    for (const warning of warnings) on(warning.line, lineOf("warned"), below(warning), new LineNumber("warned"));
    for (const [line, many] of decided) on(line, new LineNumber("deciding", many));
    const ends = (group ?? []).filter((line) => line <= doc.lines).map((line) => doc.line(line).from);
    return { drawn: Decoration.set(drawn, true), numbers: RangeSet.of(numbers, true), group: ends };
  }

  const marks = cm.StateField.define({
    create: ({ doc }) => placed(doc, UNMARKED),
    update(value, { effects, docChanged, changes }) {
      const found = effects.find((effect) => effect.is(mark));
      if (found !== undefined || !docChanged) return found?.value ?? value;
      // Until the next answer, the marks move with the text.
      return { drawn: value.drawn.map(changes), numbers: value.numbers.map(changes), group: value.group.map((at) => changes.mapPos(at, -1)) };
    },
    provide: (field) => [
      EditorView.decorations.from(field, ({ drawn }) => drawn),
      cm.gutterLineClass.from(field, ({ numbers }) => numbers),
      EditorView.decorations.of((view) => inGroup(view, view.state.field(field).group)),
    ],
  });

  const IN_GROUP = lineOf("in-group");
  /** The lines of the group that are in view: it may have all of a long file. */
  function inGroup({ state: { doc }, viewport }, [first, last]) {
    const found = [];
    for (let at = Math.max(first, viewport.from); at <= Math.min(last, viewport.to); at = doc.lineAt(at).to + 1) found.push(IN_GROUP.range(doc.lineAt(at).from));
    return Decoration.set(found);
  }

  const [KEY, AGENT_KEY, COMMENT] = ["key", "key agent", "comment"].map((name) => Decoration.mark({ class: name }));
  const colours = decorated(cm, PARTS, ([part]) => (part[0] === "#" ? COMMENT : AGENT.test(part) ? AGENT_KEY : KEY));

  /** How many verdicts the line at a position decides, 0 if it is not known to decide any. */
  function decidedAt({ state }, at) {
    let decided = 0;
    state.field(marks).numbers.between(at, at, (_from, _to, { many }) => {
      decided += many;
    });
    return decided;
  }

  function pickAt(view, at) {
    const { from, number } = view.state.doc.lineAt(at);
    if (decidedAt(view, from) === 0) return false;
    pick(number);
    return true;
  }

  const numbers = cm.lineNumbers({
    domEventHandlers: {
      click: (view, { from }) => pickAt(view, from),
      mouseover(view, { from }, { target }) {
        const many = decidedAt(view, from);
        target.title = many === 0 ? "" : `decides ${count(many, "verdict")}: show them`;
        return false;
      },
    },
  });
  const keys = cm.keymap.of([{ key: "Alt-Enter", run: (view) => pickAt(view, view.state.selection.main.head) }]);

  // CodeMirror would scroll the page, too: on a phone, away from the answer.
  function scrollInBox(view, { head }, { y }) {
    if (y !== "center") return false;
    const { top, height } = view.lineBlockAt(head);
    const { scrollTop, clientHeight } = view.scrollDOM;
    if (top < scrollTop + 24 || top + height > scrollTop + clientHeight - 24) view.scrollDOM.scrollTop = top - clientHeight / 3;
    return true;
  }

  return {
    extensions: [marks, colours, numbers, keys, EditorView.lineWrapping, EditorView.scrollHandler.of(scrollInBox)],
    marking: (doc, found) => mark.of(placed(doc, found)),
  };
}
