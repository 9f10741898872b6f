// The field with the text of a file, which comes over its lines while it is edited. Some texts of half a megabyte block a
// browser for ten seconds in a textarea: hundreds of thousands of lines, or one line full of bidirectional controls. They
// are kept outside the field: they are tested and shown like any other, but cannot be edited.

import { insertAtSelection, LONG, takeLongPastes } from "./long-paste.js";
import { count, el } from "./text.js";
import { PageUndo } from "./page-undo.js";

const MOST_LINES = 60_000;
const LONGEST_LINE = 10_000;
const LINE_HEIGHT = 24;
const PADDING = 8;

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
    this._numbers = el("div", { class: "numbers", "aria-hidden": "true" });
    field.after(this._numbers, this._note);
    this._undo = new PageUndo(field, (text) => {
      this.value = text;
    });
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

  /** Put a text in the place of all that there is, as if the user had pasted it. */
  replace(text, what = "The text was replaced.") {
    const before = this.value;
    this.value = text;
    this._undo.remember(before, what);
    this._whole = true;
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Put another file in the place of this one; Ctrl+Z brings it back. */
  put(text) {
    const before = this.value;
    this.value = text;
    this._undo.remember(before, "");
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

  /** Put `text` in the place of a part, as if it had been typed, so that one undo takes both back. */
  write(from, end, text) {
    const { field } = this;
    const before = document.activeElement;
    const isShort = this._held === null && text.length + end - from < LONG;
    field.focus({ preventScroll: true });
    if (isShort && document.activeElement === field) {
      const { scrollTop } = field;
      field.setSelectionRange(from, end);
      document.execCommand(text === "" ? "delete" : "insertText", false, text);
      field.scrollTop = scrollTop;
      before?.focus({ preventScroll: true });
    } else {
      this.replace(this.value.slice(0, from) + text + this.value.slice(end), "");
    }
  }

  /** Take the last change back, the page's or what was typed. */
  undo() {
    const before = document.activeElement;
    this.field.focus({ preventScroll: true });
    if (this._undo.isLast) this._undo.undo();
    else document.execCommand("undo");
    before?.focus({ preventScroll: true });
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
