// A long text that is pasted into a field.
//
// Browsers take seconds to insert thousands of lines, since it can be undone piece by piece. So the page puts a long
// paste into the field itself, in a tenth of a second, and takes it back itself (PageUndo).

/** Characters of a text that is not for the browser to put into a field. */
const LONG = 10_000;

/** Put long pastes into `field` by `insert(text)`; others are the browser's. */
export function takeLongPastes(field, insert) {
  field.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length < LONG) return;
    event.preventDefault();
    insert(text);
  });
}

/** Put a text in the place of the selection, as a paste does. */
export function insertAtSelection(field, text) {
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
}
