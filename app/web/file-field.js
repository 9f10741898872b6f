// A field for a whole file. Some texts of half a megabyte block a browser for ten seconds in a textarea: hundreds of
// thousands of lines, or one line full of bidirectional controls. They are kept outside the field: they are tested and
// shown like any other, but cannot be edited.

import { count, el } from "./text.js";

const MOST_LINES = 60_000;
const LONGEST_LINE = 10_000;

export class FileField {
  constructor(field) {
    this._field = field;
    this._held = null;
    this._note = el("p", { class: "too-large", hidden: true, tabindex: -1 });
    field.after(this._note);
    field.addEventListener("paste", (event) => {
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (burden(text) === null) return;
      event.preventDefault();
      this.value = text;
      this._note.focus();
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  get value() {
    return this._held ?? this._field.value;
  }

  set value(text) {
    const why = burden(text);
    this._held = why === null ? null : text;
    this._field.value = why === null ? text : "";
    this._field.hidden = why !== null;
    this._note.hidden = why === null;
    this._note.replaceChildren(...(why === null ? [] : [`This file has ${why}: it is tested as a whole but cannot be edited here. `, this._emptier()]));
  }

  _emptier() {
    const button = el("button", { type: "button" }, "Clear the field");
    button.addEventListener("click", () => {
      this.value = "";
      this._field.focus();
      this._field.dispatchEvent(new Event("input", { bubbles: true }));
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
