// What happens when the user takes the advice of a warning: its line is written anew, and can be put back.

import { el, plain } from "./text.js";
import { inOneLine } from "./listing.js";

const at = (id) => document.getElementById(id);

/** Write `instead` in the place of a line of a FileField that is still as `written`. */
export function takeAdvice(field, line, written, instead) {
  const before = field.value;
  const { scrollTop } = at("robots");
  const applied = field.replaceLine(line, written, instead);
  at("robots").scrollTop = scrollTop;
  at("lines").focus({ preventScroll: true });
  if (!applied) return tellAdvice("The text has changed since this test: test again.");
  const undo = el("button", { type: "button", class: "to-line" }, "Undo");
  undo.addEventListener("click", () => {
    field.replace(before);
    at("lines").focus({ preventScroll: true });
  });
  return tellAdvice(plain(`Line ${line} has changed: ${inOneLine(instead)}`), " ", undo);
}

/** Say what became of an advice; nothing to clear it. */
export function tellAdvice(...parts) {
  at("advice-said").replaceChildren(...parts);
}
