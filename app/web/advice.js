// The advice of warnings: its words, and what happens when the user takes it.

import { el, plain, quoted } from "./text.js";

const said = document.getElementById("advice-said");

/** A warning in words, with what to write instead where the words do not say it. */
export function wordsOf({ message, instead }) {
  const isNew = instead && !message.includes(instead);
  return [quoted(message), isNew && el("span", { class: "instead" }, instead.split("\n").map((line) => el("code", {}, quoted(line, 300))))].filter(Boolean);
}

/** The button that takes the advice of a warning. */
export function fixButton({ line, instead }) {
  const label = plain(`Fix it: line ${line}, write ${inOneLine(instead)}`);
  return el("button", { type: "button", "data-advice": line, "aria-label": label, title: label }, "Fix it");
}

/** Write what a warning advises in the place of its line in the editor. */
export function takeAdvice(editor, line, { written, instead }) {
  editor.focus();
  if (!editor.replaceLine(line, written, instead)) return tellAdvice("The text has changed since this test: test again.");
  return tellUndo(editor, `Line ${line} has changed: ${inOneLine(instead)}`);
}

/** Say what the page has done to the text in the editor, which can be undone. */
export function tellUndo(editor, what) {
  const undo = el("button", { type: "button", class: "link" }, "Undo");
  undo.addEventListener("click", () => {
    editor.undo();
    editor.focus();
    tellAdvice();
  });
  return tellAdvice(plain(what), " ", undo);
}

/** Say what became of an advice; nothing to clear it. */
export function tellAdvice(...parts) {
  said.replaceChildren(...parts);
}

/** A replacement of one or more lines as a part of a sentence. */
function inOneLine(instead) {
  return instead.split("\n").join(", and below it ");
}
