// Takes back what the page itself has put into a field, which the browser's own undo does not know.

import { el } from "./text.js";

export class PageUndo {
  /** `put(text)` puts a former text back. */
  constructor(field, put) {
    this._put = put;
    this._before = null;
    this._isLast = false;
    this._said = el("span");
    const undo = el("button", { type: "button", class: "to-line" }, "Undo");
    this._line = el("p", { class: "said", role: "status", hidden: true }, this._said, " ", undo);
    (field.closest(".line-numbers") ?? field).after(this._line);
    undo.addEventListener("click", () => this._undo(field));
    field.addEventListener("keydown", (event) => {
      const isUndo = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey;
      if (!isUndo || !this._isLast) return;
      event.preventDefault();
      this._undo(field);
    });
    // What is typed afterwards is for the browser to undo.
    field.addEventListener("input", (event) => {
      if (event.isTrusted) this._isLast = false;
    });
  }

  /** The page is about to change the field from the text `before`; `what` says how. */
  remember(before, what) {
    this._before = before;
    this._isLast = true;
    this._said.textContent = what;
    this._line.hidden = before === "";
  }

  /** There is nothing to take back. */
  forget() {
    this._before = null;
    this._isLast = false;
    this._line.hidden = true;
  }

  _undo(field) {
    const before = this._before;
    this.forget();
    this._put(before);
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
