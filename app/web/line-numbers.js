// A text field with line numbers, which marks and explains lines that cannot be read.

import { insertAtSelection, takeLongPastes } from "./long-paste.js";
import { el, quoted } from "./text.js";
import { PageUndo } from "./page-undo.js";

const MOST_NUMBERED = 2000;

export class LineNumbers {
  constructor(field, said) {
    this._field = field;
    this._said = said;
    this._gutter = field.parentElement.querySelector(".gutter");
    this._troubles = new Map();
    field.addEventListener("input", () => this.clear());
    this._undo = new PageUndo();
    this._watched = this._undo.watch(field, this, (text) => {
      field.value = text;
    });
    takeLongPastes(field, (text) => this._change("Pasted.", () => insertAtSelection(field, text)));
    field.addEventListener("scroll", () => {
      this._gutter.scrollTop = field.scrollTop;
    });
    said.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-line]");
      if (button !== null) this._select(Number(button.dataset.line));
    });
    this.clear();
  }

  get value() {
    return this._field.value;
  }

  set value(text) {
    this._field.value = text;
    this._undo.forget(this._watched);
    this.clear();
  }

  /** Put a text in the place of all that the field holds, as the user would; it can be undone. `what` says so. */
  replace(text, what) {
    this._change(what, () => {
      this._field.value = text;
    });
  }

  _change(what, change) {
    const before = this.value;
    change();
    this._undo.remember(this._watched, before, what);
    this._field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** The lines that are not blank, each {line, text}. */
  get asked() {
    const lines = this._field.value.split("\n").map((text, index) => ({ line: index + 1, text: text.trim() }));
    return lines.filter(({ text }) => text !== "");
  }

  /** Clear all error messages. */
  clear() {
    this.tell([]);
  }

  /** Show errors, and doubts about lines that could be read, each {line, detail}; line null is the whole field. */
  tell(troubles, doubts = []) {
    this._troubles = new Map(troubles.map(({ line, detail }) => [line, detail]));
    this._said.replaceChildren(
      ...[...troubles, ...doubts].map(({ line, detail }, at) =>
        el("p", { class: at < troubles.length ? "wrong" : "odd" }, line && el("button", { type: "button", class: "to-line", "data-line": line }, `line ${line}`), line && " ", quoted(detail, 400)),
      ),
    );
    if (troubles.length > 0) this._field.setAttribute("aria-invalid", "true");
    else this._field.removeAttribute("aria-invalid");
    this._number();
  }

  _number() {
    const lines = Math.min(this._field.value.split("\n").length, MOST_NUMBERED);
    const drawn = `${lines} ${[...this._troubles.keys()]}`;
    if (drawn === this._drawn) return;
    this._drawn = drawn;
    const numbers = Array.from({ length: lines }, (_, index) => {
      const wrong = this._troubles.has(index + 1);
      return wrong ? el("span", { class: "wrong" }, `✕ ${index + 1}\n`) : `${index + 1}\n`;
    });
    this._gutter.replaceChildren(...numbers);
    this._gutter.normalize();
    this._gutter.scrollTop = this._field.scrollTop;
  }

  _select(line) {
    const lines = this._field.value.split("\n");
    const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this._field.focus();
    this._field.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
  }
}
