// The box with the file, in one version or two, of which one is shown. Both are in one state of CodeMirror, whose history is the
// one of all that happens to them; with a text, it brings back what else was otherwise on the page.

import { drawnFile, UNMARKED } from "./drawn-file.js";
import { isReplaced, isTyped, TextBox } from "./text-box.js";
import { shortened, unseen } from "./marked-text.js";

const IDS = ["robots", "other"];
const LABELS = ["Text of robots.txt", "Text of your version"];

export class FileEditor extends TextBox {
  /**
   * The `parts` have `changed(isReplaced)`, for each change by the user, `undone()`, after an undo or redo, `turned()`, when
   * the other version is shown, and `pick` and `fix` as of drawnFile. What undo brings back with the texts is the `page`, if
   * it has put one here, and the `source` of the file, if all of that was replaced: both have `now()` and `restore(former)`.
   */
  constructor(field, parts) {
    super(field, parts.changed);
    this._parts = parts;
    this._label = field.labels[0];
    this._plain = { side: 0, hidden: "" };
    this._put = ["", ""];
    this._marks = UNMARKED;
    this._copied = null;
    this._copy = null;
  }

  /** The text of the file, and that of the user's version, which is empty if there is none. */
  get texts() {
    const { side, hidden } = this._versions;
    return side === 0 ? [this.value, hidden.toString()] : [hidden.toString(), this.value];
  }

  /** The version that is shown, 0 or 1. */
  get side() {
    return this._versions.side;
  }

  set side(side) {
    this.put([], side);
  }

  /** Whether the user has changed the text of the file since the page put it there. */
  get isTyped() {
    return !["", this._put[0]].includes(this.texts[0]);
  }

  /**
   * Put texts in the place of those of both versions, undefined for one that stays, and show `side`. Undo brings back the
   * former ones, and with them the page as `before`, if that is given.
   */
  put(given, side = this.side, before = null) {
    const former = this.texts;
    const texts = former.map((text, at) => given[at] ?? text);
    this._put = this._put.map((text, at) => given[at] ?? text);
    const isSame = texts.every((text, at) => text === former[at]);
    if (isSame && side === this.side) return;
    if (this._view === null) {
      const turns = side !== this.side;
      this._plain = { side, hidden: texts[1 - side] };
      this.value = texts[side];
      if (turns) this._turn(side);
      return;
    }
    const { state } = this._view;
    const { hidden } = this._versions;
    const docs = (this.side === 0 ? [state.doc, hidden] : [hidden, state.doc]).map((doc, at) => (texts[at] === former[at] ? doc : state.toText(texts[at])));
    const step = before === null ? [] : [this._former.of({ part: "page", before, after: null, isDone: true })];
    this._replace(docs[side], { effects: [this._shown.of({ side, hidden: docs[1 - side], isTurn: isSame }), ...step] });
  }

  /** Replace a line, from 1, if it is still `written` so; its comment stays. False if it is not. */
  replaceLine(line, written, instead) {
    const { from, to, text } = this._view.state.doc.line(line);
    if (text !== written) return false;
    const hash = text.indexOf("#");
    const insert = hash < 0 ? instead : `${instead} ${text.slice(hash)}`;
    this._view.dispatch({ changes: { from, to, insert }, selection: { anchor: from }, annotations: this._cm.isolateHistory.of("full") });
    this._changed(false);
    return true;
  }

  /** Take back all changes since the page was as `before` one of them; false if that is not known. */
  undoTo(before) {
    const isDone = () => this._view?.state.field(this._done).includes(before) ?? false;
    if (!isDone()) return false;
    while (isDone() && this.undo()) continue;
    return true;
  }

  /** Mark what a test has found in the file that is shown (see drawnFile). */
  mark(marks) {
    this._marks = marks;
    const view = this._copy ?? this._view;
    view?.dispatch({ effects: this._drawn.marking(view.state.doc, marks) });
  }

  /** Scroll the box, and nothing around it, until a line, from 1, is well inside. */
  reveal(line) {
    const view = this._copy ?? this._view;
    if (view === null || line > view.state.doc.lines) return;
    view.dispatch({ effects: this._cm.EditorView.scrollIntoView(view.state.doc.line(line).from, { y: "center" }) });
  }

  /** Show a copy of a file, which cannot be changed, in the place of the versions; null to show those. */
  showCopy(text) {
    if (text === this._copied) return;
    this._copied = text;
    if (this._view !== null) this._open(text);
  }

  async begin(cm) {
    this._drawn = drawnFile(cm, this._parts);
    await super.begin(cm);
    const marks = this._marks;
    if (this._copied !== null) this._open(this._copied);
    this.mark(marks);
  }

  get _versions() {
    return this._view?.state.field(this._sides) ?? this._plain;
  }

  _open(text) {
    const { EditorState, EditorView } = this._cm;
    this._copy?.destroy();
    this._copy = null;
    this._view.dom.hidden = text !== null;
    if (text === null) return;
    const attributes = { "aria-label": "The service's copy of robots.txt", "aria-readonly": "true", tabindex: "0" };
    const isFixed = [EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of(attributes)];
    const state = EditorState.create({ doc: text, extensions: [unseen(this._cm), shortened(this._cm), this._drawn.extensions, isFixed] });
    this._copy = new EditorView({ state, parent: this._view.dom.parentElement });
  }

  _turn(side) {
    this._label.textContent = LABELS[side];
    if (this._view === null) this._field.id = this._label.htmlFor = IDS[side];
    this._parts.turned();
  }

  _extensions(cm) {
    // To show `side`, while `hidden` is the text of the other one. Who undoes a step does not mean one that only did that.
    const shown = cm.StateEffect.define();
    const sides = cm.StateField.define({
      create: () => ({ side: this._plain.side, hidden: cm.Text.of(this._plain.hidden.split(/\r\n?|\n/)) }),
      update: (value, { effects }) => effects.find((effect) => effect.is(shown))?.value ?? value,
    });
    // A `part` of the page was as `before` a step, and as `after` it once that is not done any more.
    const former = cm.StateEffect.define();
    const done = cm.StateField.define({
      create: () => [],
      update(value, { effects }) {
        const step = effects.find((effect) => effect.is(former))?.value;
        if (step === undefined) return value;
        return step.isDone ? [...value, step.before] : value.filter((before) => before !== step.before);
      },
    });
    const inverted = (effect, state) => {
      if (effect.is(shown)) return shown.of({ ...state.field(sides), isTurn: effect.value.isTurn });
      const { part, before, after, isDone } = effect.value;
      return former.of({ part, before, after: isDone ? after : this._parts[part].now(), isDone: !isDone });
    };
    const replacing = (transaction) => {
      const isFile = transaction.startState.field(sides).side === 0;
      const before = isFile && isTyped(transaction) && isReplaced(transaction) ? this._parts.source.now() : null;
      return before && { effects: former.of({ part: "source", before, after: null, isDone: true }) };
    };
    Object.assign(this, { _shown: shown, _sides: sides, _former: former, _done: done });
    return [
      this._drawn.extensions,
      sides,
      done,
      cm.invertedEffects.of(({ effects, startState }) => effects.filter((it) => it.is(shown) || it.is(former)).map((it) => inverted(it, startState))),
      cm.EditorState.transactionExtender.of(replacing),
      cm.search({ top: true }),
      cm.keymap.of(cm.searchKeymap),
      cm.placeholder("Paste a robots.txt, drop one here, or fetch a site above."),
      cm.EditorView.contentAttributes.compute([sides], (state) => ({ id: IDS[state.field(sides).side] })),
      // Files that are dropped are the page's.
      cm.EditorView.domEventHandlers({ drop: ({ dataTransfer }) => dataTransfer.files.length > 0 }),
      cm.EditorView.updateListener.of(({ startState, state }) => {
        const { side } = state.field(sides);
        if (side !== startState.field(sides).side) this._turn(side);
      }),
    ];
  }

  _move(command) {
    let step = null;
    const dispatch = (transaction) => {
      step = transaction;
      this._view.dispatch(transaction);
    };
    const valueOf = (type) => step.effects.find((effect) => effect.is(type))?.value;
    do {
      if (!command({ state: this._view.state, dispatch })) return false;
    } while (valueOf(this._shown)?.isTurn);
    const former = valueOf(this._former);
    if (former !== undefined) this._parts[former.part].restore(former.isDone ? former.after : former.before);
    if (former?.part !== "page") this._parts.undone();
    return true;
  }
}
