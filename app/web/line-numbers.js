// A text of which each line is one of a question, numbered. It marks and explains lines that cannot be read.

import { el, quoted } from "./text.js";
import { TextBox } from "./text-box.js";

export class LineNumbers extends TextBox {
  /** `said` is where lines are explained; `changed()` is called when the user changes the text. */
  constructor(field, said, changed) {
    super(field, () => {
      this.clear();
      changed();
    });
    this._said = said;
    this._wrong = [];
    said.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-line]");
      if (button !== null) this._select(Number(button.dataset.line));
    });
  }

  get value() {
    return super.value;
  }

  set value(text) {
    super.value = text;
    this.clear();
  }

  /** The lines that are not blank, each {line, text}. */
  get asked() {
    const lines = this.value.split("\n").map((text, index) => ({ line: index + 1, text: text.trim() }));
    return lines.filter(({ text }) => text !== "");
  }

  /** Clear all error messages. */
  clear() {
    this.tell([]);
  }

  /** Show errors, and doubts about lines that could be read, each {line, detail}; line null is the whole field. */
  tell(troubles, doubts = []) {
    this._wrong = troubles.flatMap(({ line }) => line ?? []);
    this._said.replaceChildren(
      ...[...troubles, ...doubts].map(({ line, detail }, at) =>
        el("p", { class: at < troubles.length ? "wrong" : "odd" }, line && el("button", { type: "button", class: "to-line", "data-line": line }, `line ${line}`), line && " ", quoted(detail, 400)),
      ),
    );
    this.isInvalid = troubles.length > 0;
    this._view?.dispatch({ effects: this._mark.of(this._wrong) });
  }

  async begin(cm) {
    await super.begin(cm);
    this._view.dispatch({ effects: this._mark.of(this._wrong) });
  }

  _extensions(cm) {
    class Wrong extends cm.GutterMarker {
      elementClass = "wrong";
    }
    const mark = cm.StateEffect.define();
    const wrong = cm.StateField.define({
      create: () => cm.RangeSet.empty,
      update(marks, { effects, changes, newDoc }) {
        const lines = effects.find((effect) => effect.is(mark))?.value.filter((line) => line <= newDoc.lines);
        return lines === undefined ? marks.map(changes) : cm.RangeSet.of(lines.map((line) => new Wrong().range(newDoc.line(line).from)), true);
      },
      provide: (field) => cm.gutterLineClass.from(field),
    });
    this._mark = mark;
    return [wrong, cm.lineNumbers(), cm.EditorView.contentAttributes.of({ id: this._field.id })];
  }

  _select(number) {
    this.focus();
    if (this._view === null) return;
    const { from, to } = this._view.state.doc.line(Math.min(number, this._view.state.doc.lines));
    this._view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
  }
}
