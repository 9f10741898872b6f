// Sentences below the fields: what is wrong with a file or with the question.

import { plain } from "./text.js";

const FILES = ["robots", "other"];

const at = (id) => document.getElementById(id);

/** Say a sentence about "robots", "other" or "question"; empty for none. */
export function say(name, text, wrong = false) {
  const said = at(`${name}-said`);
  said.textContent = plain(text);
  said.classList.toggle("wrong", wrong);
  if (!FILES.includes(name)) return;
  // The field of the version that is not shown is not there.
  if (wrong) at(name)?.setAttribute("aria-invalid", "true");
  else at(name)?.removeAttribute("aria-invalid");
}
