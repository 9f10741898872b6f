// Asks about the example while the script of the page is still on its way: on a slow net, its verdicts are there as soon as that
// is. If the page begins with another question, this answer is not used.

import { EXAMPLE } from "./example.js";
import { fileQuestion } from "./file-question.js";
import { posted, request } from "./request.js";

/** Whether a draft or a key may be kept, with which the page begins otherwise. */
function isKnown() {
  try {
    return localStorage.length + sessionStorage.length > 0;
  } catch {
    return false; // the user does not permit to keep anything
  }
}

if (globalThis.firstAnswer === undefined && location.hash === "" && !isKnown()) {
  const { robots, urls, agents, dialects, purposes } = EXAMPLE;
  const question = fileQuestion({ text: robots, truncated: false }, { urls: urls.split("\n"), agents: agents.split("\n"), dialects, purposes });
  const init = posted(question);
  globalThis.firstAnswer = { body: init.body, response: request("v1/test", init).catch(() => null) };
}
