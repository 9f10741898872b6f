// One undo, and one redo, of what is typed into some fields and of what the page does to them. The browser's own forgets
// what was typed into a field once a script has written there.

import { el } from "./text.js";

/** How many texts are kept, in characters of all of them. */
const MOST = 20_000_000;

export class PageUndo {
  /** `state()` is the page as a whole, and `restore(state)` puts it back: for changes of more than one field. */
  constructor(state, restore) {
    this._state = state;
    this._restore = restore;
    this._done = [];
    this._undone = [];
    this._isBusy = false;
  }

  /** Take back what happens to `field`, whose text is `of.value`; `put(text)` puts a former one back. */
  watch(field, of, put) {
    const said = el("span");
    const undo = el("button", { type: "button", class: "link" }, "Undo");
    const line = el("p", { class: "hint", role: "status", hidden: true }, said, " ", undo);
    (field.closest(".line-numbers, .editor") ?? field).after(line);
    const watched = { field, of, put, said, line, offered: null, text: of.value, caret: 0, kind: null };
    undo.addEventListener("click", () => {
      this._undoTo(watched.offered);
      field.focus();
    });
    field.addEventListener("keydown", (event) => this.takeKey(event));
    // The menus of the browser offer these, too.
    field.addEventListener("beforeinput", (event) => {
      if (event.inputType !== "historyUndo" && event.inputType !== "historyRedo") return;
      event.preventDefault();
      if (event.inputType === "historyUndo") this.undo();
      else this.redo();
    });
    field.addEventListener("input", (event) => this._typed(watched, event));
    return watched;
  }

  /** Undo or redo if that is what a key asks for. */
  takeKey(event) {
    const key = event.key.toLowerCase();
    const isMeant = key === "z" ? event.ctrlKey || event.metaKey : key === "y" && event.ctrlKey;
    if (!isMeant || event.altKey) return;
    event.preventDefault();
    if (key === "z" && !event.shiftKey) this.undo();
    else this.redo();
  }

  /**
   * The page has changed a watched field from the text `text`, and, with it, the page from `state`; `what` says how, or is
   * empty where that is said elsewhere.
   */
  remember(watched, text, what, state = null) {
    const step = { watched, text, state };
    this._add(step);
    watched.text = watched.of.value;
    watched.kind = null;
    watched.offered = step;
    watched.said.textContent = what;
    watched.line.hidden = text === "" || what === "";
  }

  /** There is nothing of this field to take back. */
  forget(watched) {
    watched.text = watched.of.value;
    if (this._isBusy) return;
    const isOther = (step) => step.watched !== watched;
    this._done = this._done.filter(isOther);
    this._undone = this._undone.filter(isOther);
    watched.line.hidden = true;
  }

  /** Take the last change back. */
  undo() {
    this._move(this._done, this._undone);
  }

  /** Do again what was taken back last. */
  redo() {
    this._move(this._undone, this._done);
  }

  /** Take back all changes since the page was in this `state`; false if that is not known. */
  undoTo(state) {
    return this._undoTo(this._done.find((step) => step.state === state));
  }

  _undoTo(step) {
    if (!this._done.includes(step)) return false;
    while (this._done.includes(step)) this.undo();
    return true;
  }

  _add(step) {
    this._undone = [];
    this._done.push(step);
    let kept = this._done.reduce((sum, { text }) => sum + text.length, 0);
    while (kept > MOST) kept -= this._done.shift().text.length;
  }

  /** Take a step of one list, and add what brings back the present to the other. */
  _move(from, to) {
    const step = from.pop();
    if (step === undefined) return;
    const { watched, text, state } = step;
    to.push({ watched, text: watched.of.value, state: state && this._state() });
    if (watched.offered === step) watched.line.hidden = true;
    if (state === null) return this._put(watched, text);
    this._isBusy = true;
    this._restore(state);
    this._isBusy = false;
    return undefined;
  }

  /** Put a text into a field, and the cursor behind what differs. */
  _put(watched, text) {
    const { field, of } = watched;
    const before = of.value;
    const { scrollTop } = field;
    watched.put(text);
    watched.text = of.value;
    watched.kind = null;
    const caret = field.value.length - sameAtEnd(before, field.value);
    if (document.activeElement === field) field.setSelectionRange(caret, caret); // some browsers would focus it
    field.scrollTop = scrollTop;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Remember the text before an input, unless it goes on with the one before. */
  _typed(watched, { inputType, data }) {
    const { field, of, text, caret, kind } = watched;
    const value = of.value;
    const added = value.length - text.length;
    watched.text = value;
    watched.caret = field.selectionStart;
    watched.kind = isPart(inputType, data, added) ? inputType : null;
    if (value === text) return;
    const isLast = this._done.at(-1)?.watched === watched && this._undone.length === 0;
    const goesOn = isLast && kind !== null && kind === watched.kind && field.selectionStart - added === caret;
    if (!goesOn) this._add({ watched, text, state: null });
  }
}

/** Whether an input that added so many characters can be part of a step, with others of its type. */
function isPart(inputType, data, added) {
  if (inputType === "insertText") return data?.length === added;
  return inputType === "insertCompositionText" || (inputType === "deleteContentBackward" && added < 0);
}

function sameAtEnd(one, other) {
  const most = Math.min(one.length, other.length);
  let same = 0;
  while (same < most && one.at(-1 - same) === other.at(-1 - same)) same += 1;
  return same;
}
