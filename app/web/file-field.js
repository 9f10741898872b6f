// The field with the text of a file, which comes over its lines while it is edited. Some texts of half a megabyte block a
// browser for ten seconds in a textarea: hundreds of thousands of lines, or one line full of bidirectional controls. They
// are kept outside the field: they are tested and shown like any other, but cannot be edited.

import { insertAtSelection, takeLongPastes } from "./long-paste.js";
import { count, el } from "./text.js";

const MOST_LINES = 60_000;
const LONGEST_LINE = 10_000;
const LINE_HEIGHT = 24;
const PADDING = 8;

export class FileField {
  /** `undo` is the PageUndo of both versions. */
  constructor(field, undo) {
    this.field = field;
    this._held = null;
    this._whole = false;
    /** Whether the user has changed the text that the page had put in. */
    this.isTyped = false;
    /** Whether the last change left nothing of the text before. */
    this.isReplaced = false;
    this._note = el("p", { class: "too-large", hidden: true, tabindex: -1 });
    this._numbers = el("div", { class: "numbers", "aria-hidden": "true" });
    field.after(this._numbers, this._note);
    this._undo = undo;
    this._watched = undo.watch(field, this, (text) => this._set(text));
    field.addEventListener("input", () => {
      this.isTyped = this.value !== "";
      this.isReplaced = this._whole || this.value === "";
      this._whole = false;
      this._number();
    });
    field.addEventListener("paste", () => {
      this._whole = field.selectionStart === 0 && field.selectionEnd === field.value.length;
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") document.getElementById("lines").focus({ preventScroll: true });
    });
    for (const event of ["focus", "scroll"]) field.addEventListener(event, () => this._number());
    takeLongPastes(field, (text) => this._insert(text));
  }

  /** Put a text in the place of all that there is, as if the user had pasted it; undo restores `state`, if there is one. */
  replace(text, what = "The text was replaced.", state = null) {
    this._put(text, what, state);
    this._whole = true;
    this._changed();
  }

  /** Put another file in the place of this one; undo restores the `state` before. */
  put(text, state) {
    this._put(text, "", state);
  }

  get value() {
    return this._held ?? this.field.value;
  }

  set value(text) {
    const before = this.value;
    this._set(text);
    if (this.value !== before) this._undo.forget(this._watched);
  }

  _set(text) {
    const why = burden(text);
    this.isTyped = false;
    this._held = why === null ? null : text;
    this.field.value = why === null ? text : "";
    this.field.hidden = why !== null;
    this._note.hidden = why === null;
    this._note.replaceChildren(...(why === null ? [] : [`This file has ${why}: it is tested as a whole but cannot be edited here. `, this._emptier()]));
  }

  /** Go on at the end of a line, from 1, which is drawn so many pixels below the top of the field. */
  edit(line, y) {
    if (this._held !== null) return;
    const [, end] = this._lineAt(line) ?? [0, this.value.length];
    this.field.focus({ preventScroll: true });
    this.field.setSelectionRange(end, end);
    this.field.scrollTop = (line - 1) * LINE_HEIGHT + PADDING - y;
  }

  /** The line of the text in which the cursor is. */
  get line() {
    return this.value.slice(0, this.field.selectionStart).split("\n").length;
  }

  /** Mark the lines behind a verdict as the listing does: its `group`, [first, last], and the `line` that decides. */
  mark({ group, line, verdict }) {
    const layer = (colour, left, width, first, last) =>
      `linear-gradient(var(${colour}), var(${colour})) ${left} ${(first - 1) * LINE_HEIGHT + PADDING}px / ${width} ${(last - first + 1) * LINE_HEIGHT}px no-repeat local`;
    const layers = [
      group && layer("--accent", "calc(var(--numbers) - 3px)", "3px", ...group),
      line && layer(verdict === "allow" ? "--allow-wash" : "--block-wash", "var(--numbers)", "100%", line, line),
    ];
    this.field.style.background = [...layers.filter(Boolean), "var(--card)"].join(", ");
  }

  /** Replace a line, from 1, if it is still `written` so; its comment stays. False if it is not. */
  replaceLine(line, written, instead) {
    const [from, end] = this._lineAt(line) ?? [0, -1];
    if (end < 0 || this.value.slice(from, end) !== written) return false;
    const hash = written.indexOf("#");
    this.write(from, end, hash < 0 ? instead : `${instead} ${written.slice(hash)}`);
    return true;
  }

  /** Take the last change back, of either version. */
  undo() {
    this._undo.undo();
  }

  /** Put `text` in the place of a part. */
  write(from, end, text) {
    const { scrollTop } = this.field;
    this._put(this.value.slice(0, from) + text + this.value.slice(end), "");
    this.field.scrollTop = scrollTop;
    this._changed();
  }

  _put(text, what, state = null) {
    const before = this.value;
    this._set(text);
    this._undo.remember(this._watched, before, what, state);
  }

  _changed() {
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Where a line, from 1, begins and ends; undefined if there are fewer. */
  _lineAt(line) {
    const text = this.value;
    const breaks = /\r\n|\r|\n/g;
    let from = 0;
    for (let at = 1; at < line; at += 1) {
      if (breaks.exec(text) === null) return undefined;
      from = breaks.lastIndex;
    }
    return [from, breaks.exec(text)?.index ?? text.length];
  }

  /** Draw the numbers of the lines that are in view. */
  _number() {
    const { scrollTop, clientHeight, value } = this.field;
    let lines = 1;
    for (let at = value.indexOf("\n"); at >= 0; at = value.indexOf("\n", at + 1)) lines += 1;
    const first = Math.floor(scrollTop / LINE_HEIGHT);
    const last = Math.min(lines, first + Math.ceil(clientHeight / LINE_HEIGHT) + 1);
    this._numbers.textContent = Array.from({ length: Math.max(last - first, 0) }, (_, at) => first + at + 1).join("\n");
    this._numbers.style.top = `${PADDING + first * LINE_HEIGHT - scrollTop}px`;
  }

  _insert(text) {
    const field = this.field;
    const before = field.value;
    const whole = before.slice(0, field.selectionStart) + text + before.slice(field.selectionEnd);
    if (burden(whole) === null) {
      insertAtSelection(field, text);
    } else {
      this._set(whole);
      this._note.focus();
    }
    this._undo.remember(this._watched, before, "Pasted.");
    this._changed();
  }

  _emptier() {
    const button = el("button", { type: "button", class: "link" }, "Clear the field");
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
