// Links to what the page shows: to all of it, or to one verdict.

import { count } from "./text.js";
import { fragmentOf } from "./state.js";

const at = (id) => document.getElementById(id);

/** Show and copy the link to a state; `here`, the address of the page becomes that link. */
export async function showLink(state, here) {
  const { fragment, left } = await fragmentOf(state);
  const size = count(new TextEncoder().encode(state.robots + state.other).length, "byte");
  const said = {
    file: `The file is too large for a link (${size}), so the link names the site and will show its current file.`,
    site: `The file is too large for a link (${size}), and no site is named: the link contains only the question.`,
    question: "The question is too long for a link.",
  };
  at("linked").hidden = false;
  if (fragment === null) {
    at("link-text").value = "";
    at("link-said").textContent = said[left];
    return;
  }
  if (here) history.replaceState(null, "", fragment);
  at("link-text").value = new URL(fragment, location.href).href;
  at("link-text").focus();
  at("link-text").select();
  const copied = await copy(at("link-text").value);
  at("link-said").textContent = [copied ? "Copied." : "", left === null ? "" : said[left]].join(" ").trim();
}

/** Copy a text; false if it cannot be copied: without TLS there is no access to the clipboard. */
export async function copy(text) {
  if (navigator.clipboard === undefined) return false;
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  );
}
