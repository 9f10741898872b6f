// A field for a whole file. Some texts of half a megabyte block a browser for ten seconds in a textarea: hundreds of
// thousands of lines, or one line full of bidirectional controls. They are kept outside the field: they are tested and
// shown like any other, but cannot be edited.

import { insertAtSelection, takeLongPastes } from "./long-paste.js";
import { count, el } from "./text.js";
import { PageUndo } from "./page-undo.js";

const MOST_LINES = 60_000;
const LONGEST_LINE = 10_000;

export class FileField {
  constructor(field) {
    this.field = field;
    this._held = null;
    this._whole = false;
    /** Whether the user has changed the text that the page had put in. */
    this.isTyped = false;
    /** Whether the last change left nothing of the text before. */
    this.isReplaced = false;
    this._note = el("p", { class: "too-large", hidden: true, tabindex: -1 });
    field.after(this._note);
    this._undo = new PageUndo(field, (text) => {
      this.value = text;
    });
    field.addEventListener("input", () => {
      this.isTyped = this.value !== "";
      this.isReplaced = this._whole || this.value === "";
      this._whole = false;
    });
    field.addEventListener("paste", () => {
      this._whole = field.selectionStart === 0 && field.selectionEnd === field.value.length;
    });
    takeLongPastes(field, (text) => this._insert(text));
  }

  /** Put a text in the place of all that there is, as if the user had pasted it. */
  replace(text) {
    const before = this.value;
    this.value = text;
    this._undo.remember(before, "The text was replaced.");
    this._whole = true;
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  get value() {
    return this._held ?? this.field.value;
  }

  set value(text) {
    const why = burden(text);
    this._undo.forget();
    this.isTyped = false;
    this._held = why === null ? null : text;
    this.field.value = why === null ? text : "";
    this.field.hidden = why !== null;
    this._note.hidden = why === null;
    this._note.replaceChildren(...(why === null ? [] : [`This file has ${why}: it is tested as a whole but cannot be edited here. `, this._emptier()]));
  }

  /** Replace a line, from 1, if it is still `written` so; its comment stays. False if it is not. */
  replaceLine(line, written, instead) {
    const text = this.value;
    const breaks = /\r\n|\r|\n/g;
    let from = 0;
    for (let at = 1; at < line; at += 1) {
      if (breaks.exec(text) === null) return false;
      from = breaks.lastIndex;
    }
    const end = breaks.exec(text)?.index ?? text.length;
    if (text.slice(from, end) !== written) return false;
    const hash = written.indexOf("#");
    const whole = hash < 0 ? instead : `${instead} ${written.slice(hash)}`;
    this.value = text.slice(0, from) + whole + text.slice(end);
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
    return true;
  }

  _insert(text) {
    const field = this.field;
    const whole = field.value.slice(0, field.selectionStart) + text + field.value.slice(field.selectionEnd);
    const before = field.value;
    if (burden(whole) === null) {
      this._undo.remember(before, "Pasted.");
      return insertAtSelection(field, text);
    }
    this.value = whole;
    this._undo.remember(before, "Pasted.");
    this._note.focus();
    return field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  _emptier() {
    const button = el("button", { type: "button" }, "Clear the field");
    button.addEventListener("click", () => {
      this.replace("");
      this.field.focus();
    });
    return button;
  }
}

/** Why a text is too large to edit, or null. */
function burden(text) {
  let [lines, from, longest] = [0, 0, 0];
  while (from <= text.length) {
    const at = text.indexOf("\n", from);
    const end = at < 0 ? text.length : at;
    longest = Math.max(longest, end - from);
    lines += 1;
    from = end + 1;
  }
  if (longest > LONGEST_LINE) return `a line of ${count(longest, "character")}`;
  if (lines > MOST_LINES) return count(lines, "line");
  return null;
}
