// What happens when the user takes the advice of a warning: its line is written as advised, and can be put back.

import { el, plain } from "./text.js";
import { inOneLine } from "./listing.js";

const at = (id) => document.getElementById(id);

/** Write `instead` in the place of a line of a FileField that is still as `written`. */
export function takeAdvice(file, line, written, instead) {
  at("lines").focus({ preventScroll: true });
  if (!file.replaceLine(line, written, instead)) return tellAdvice("The text has changed since this test: test again.");
  return tellUndo(file, `Line ${line} has changed: ${inOneLine(instead)}`);
}

/** Say what the page has done to a FileField, which can be undone. */
export function tellUndo(file, what) {
  const undo = el("button", { type: "button", class: "link" }, "Undo");
  undo.addEventListener("click", () => {
    file.undo();
    at("lines").focus({ preventScroll: true });
    tellAdvice();
  });
  return tellAdvice(plain(what), " ", undo);
}

/** Say what became of an advice; nothing to clear it. */
export function tellAdvice(...parts) {
  at("advice-said").replaceChildren(...parts);
}
