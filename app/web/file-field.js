// A field for a whole file. There are texts of half a megabyte that keep a browser busy for ten seconds when they stand in
// an editor, as hundreds of thousands of lines do, or one line of nothing but changes of direction. Those are held beside
// the field: judged and shown like any other, and not edited.

import { count, el } from "./text.js";

const MOST_LINES = 60_000;
const LONGEST_LINE = 10_000;

export class FileField {
  constructor(field) {
    this._field = field;
    this._held = null;
    this._note = el("p", { class: "held", hidden: true, tabindex: -1 });
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
    this._note.replaceChildren(...(why === null ? [] : [`This file has ${why}: it is judged whole, but not edited here. `, this._emptier()]));
  }

  _emptier() {
    const button = el("button", { type: "button" }, "Empty the field");
    button.addEventListener("click", () => {
      this.value = "";
      this._field.focus();
      this._field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    return button;
  }
}

/** What makes a text too much for an editor; null where nothing does. */
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
