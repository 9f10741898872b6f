// A text of several lines that the user edits: in a plain field at first, and in CodeMirror once that has come, which the first
// table does not wait for. If it does not come, the field stays.

import { shortened, unseen } from "./marked-text.js";

/** Characters of a text that is not put into a plain field while CodeMirror may still come: some take fields seconds. */
const LONG = 100_000;

/** Milliseconds without a key after which what is typed is a step of its own. */
const PAUSE = 2000;

export class TextBox {
  /** `changed(isReplaced)` is called when the user changes the text; if that leaves nothing of the former one, it is replaced. */
  constructor(field, changed) {
    this._field = field;
    this._changed = changed;
    this._view = null;
    this._kind = null;
    this._filled = "";
    this._before = null;
    this._long = null;
    this._isComposing = false;
    let isWhole = false;
    field.addEventListener("beforeinput", () => {
      isWhole = field.selectionStart === 0 && field.selectionEnd === field.value.length;
    });
    field.addEventListener("input", () => changed(isWhole || field.value === ""));
    for (const name of ["compositionstart", "compositionend"]) {
      field.addEventListener(name, () => {
        this._isComposing = name === "compositionstart";
      });
    }
  }

  get value() {
    return this._view?.state.doc.toString() ?? this._long ?? this._field.value;
  }

  /** Put a text in the place of the one that there is, as a step that undo takes back. */
  set value(text) {
    this._filled = text;
    if (this._view === null) {
      this._before = this.value;
      this._fill(text, text.length > LONG);
    } else if (text !== this.value) this._replace(this._view.state.toText(text));
  }

  set isInvalid(isInvalid) {
    const field = this._view?.contentDOM ?? this._field;
    if (isInvalid) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }

  get isFocused() {
    return this._view?.hasFocus ?? document.activeElement === this._field;
  }

  focus() {
    (this._view?.contentDOM ?? this._field).focus({ preventScroll: true });
  }

  /** Undo or redo if that is what a key asks for; false if it is not. */
  takeKey({ key, ctrlKey, metaKey, altKey, shiftKey }) {
    const letter = key.toLowerCase();
    if (this._view === null || altKey || !(letter === "z" ? ctrlKey || metaKey : letter === "y" && ctrlKey)) return false;
    if (letter === "z" && !shiftKey) this.undo();
    else this.redo();
    return true;
  }

  /** Take the last step back; false if there is none. In a plain field, that is the last of the page's own. */
  undo() {
    if (this._view !== null) return this._move(this._cm.undo);
    if (this._before === null) return false;
    this.value = this._before;
    this._changed(false);
    return true;
  }

  redo() {
    return this._view !== null && this._move(this._cm.redo);
  }

  /** Put CodeMirror, the module codemirror.js, in the place of the field. */
  async begin(cm) {
    const field = this._field;
    while (this._isComposing) await new Promise((done) => field.addEventListener("compositionend", () => setTimeout(done), { once: true }));
    const { value } = this;
    const { selectionStart: anchor, selectionEnd: head, scrollTop, labels } = field;
    const isFocused = document.activeElement === field;
    const [label] = labels;
    label.id = `label-of-${field.id}`;
    label.addEventListener("click", () => this.focus());
    const same = ["aria-describedby", "autocapitalize", "inputmode"].filter((name) => field.hasAttribute(name));
    const attributes = { tabindex: "0", "aria-labelledby": label.id, ...Object.fromEntries(same.map((name) => [name, field.getAttribute(name)])) };
    this._cm = cm;
    const state = cm.EditorState.create({
      doc: this._filled,
      extensions: [unseen(cm), shortened(cm), this._extensions(cm), this._steps(cm), cm.keymap.of(cm.standardKeymap), cm.EditorView.contentAttributes.of(attributes)],
    });
    const view = new cm.EditorView({ state, parent: field.parentElement });
    this._view = view;
    field.remove();
    if (value !== this._filled) this._replace(state.toText(value)); // what was typed meanwhile is a step, too
    const { length } = view.state.doc;
    view.dispatch({ selection: { anchor: Math.min(anchor, length), head: Math.min(head, length) } });
    if (isFocused) this.focus();
    view.scrollDOM.scrollTop = scrollTop;
  }

  /** CodeMirror does not come: the field stays. */
  stay() {
    if (this._long !== null) this._fill(this._long, false);
  }

  _fill(text, isLong) {
    this._long = isLong ? text : null;
    this._field.value = isLong ? "" : text;
    this._field.readOnly = isLong;
    this._field.placeholder = isLong ? "A long text, which is shown in a moment." : "";
  }

  /** Put another Text in the place of the one that there is. */
  _replace(text, spec = {}) {
    const { doc } = this._view.state;
    const changes = text === doc ? {} : { changes: { from: 0, to: doc.length, insert: text }, selection: { anchor: 0 } };
    this._view.dispatch({ ...changes, ...spec, annotations: this._cm.isolateHistory.of("full") });
    if (text !== doc) this._view.scrollDOM.scrollTop = 0;
  }

  /** A step is a word or a line, not a letter: what is typed, what is deleted, and line breaks are apart. */
  _steps(cm) {
    const { userEvent } = cm.Transaction;
    const beforeinput = ({ inputType }) => {
      // The menus of the browser offer these, too.
      if (inputType === "historyUndo") this.undo();
      else if (inputType === "historyRedo") this.redo();
      else return false;
      return true;
    };
    return [
      cm.Prec.high(cm.EditorView.domEventHandlers({ keydown: (event) => this.takeKey(event), beforeinput })),
      cm.history({ newGroupDelay: PAUSE }),
      cm.EditorState.transactionExtender.of((transaction) => {
        const kind = transaction.annotation(userEvent);
        if (!isTyped(transaction) || (kind === this._kind && kind !== "input")) return null;
        return { annotations: cm.isolateHistory.of(kind === "input" ? "full" : "before") };
      }),
      cm.EditorView.updateListener.of(({ transactions }) => {
        for (const transaction of transactions.filter(({ docChanged }) => docChanged)) {
          this._kind = isTyped(transaction) ? transaction.annotation(userEvent) : null;
          if (isTyped(transaction)) this._changed(isReplaced(transaction));
        }
      }),
    ];
  }

  _extensions() {
    return [];
  }

  /** Undo or redo a step; false if there is none. */
  _move(command) {
    if (!command(this._view)) return false;
    this._changed(false);
    return true;
  }
}

/** Whether a transaction of CodeMirror is a change by the user. */
export function isTyped(transaction) {
  return transaction.docChanged && ["input", "delete", "move"].some((name) => transaction.isUserEvent(name));
}

/** Whether a transaction leaves nothing of a text. */
export function isReplaced({ changes, startState: { doc }, newDoc }) {
  let isWhole = false;
  changes.iterChangedRanges((from, to) => {
    isWhole ||= from === 0 && to === doc.length;
  });
  return isWhole && (doc.length > 0 || newDoc.lines > 1);
}
