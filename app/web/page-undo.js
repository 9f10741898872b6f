// Takes back what the page itself has put into a field, which the browser's own undo does not know.

import { el } from "./text.js";

export class PageUndo {
  /** `put(text)` puts a former text back. */
  constructor(field, put) {
    this._put = put;
    this._before = null;
    this._isLast = false;
    this._said = el("span");
    const undo = el("button", { type: "button", class: "link" }, "Undo");
    this._line = el("p", { class: "hint", role: "status", hidden: true }, this._said, " ", undo);
    (field.closest(".line-numbers, .editor") ?? field).after(this._line);
    this._field = field;
    undo.addEventListener("click", () => this._undo());
    field.addEventListener("keydown", (event) => {
      const isUndo = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey;
      if (!isUndo || !this._isLast) return;
      event.preventDefault();
      this._undo();
    });
    // What is typed afterwards is for the browser to undo.
    field.addEventListener("input", (event) => {
      if (event.isTrusted) this._isLast = false;
    });
  }

  /** Whether the last change of the field is the page's. */
  get isLast() {
    return this._isLast;
  }

  /** Take the page's change back. */
  undo() {
    this._undo();
  }

  /** The page has changed the field from the text `before`; `what` says how, or is empty where that is said elsewhere. */
  remember(before, what) {
    this._before = before;
    this._isLast = true;
    this._said.textContent = what;
    this._line.hidden = before === "" || what === "";
  }

  /** There is nothing to take back. */
  forget() {
    this._before = null;
    this._isLast = false;
    this._line.hidden = true;
  }

  _undo() {
    const before = this._before;
    this.forget();
    this._put(before);
    this._field.focus();
    this._field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
