// What else a file says, each in a sentence: how fast, where its sitemaps are, and what holds while there is none.

import { listed } from "./crawlers.js";
import { duration } from "./labels.js";
import { el, quoted } from "./text.js";

/** The facts as pairs of a list, with what is said of sitemaps; a button with `data-if` asks what would be the case. */
export function factsOf(crawlers, maps) {
  const slow = new Map();
  for (const { name, rows: [{ rate }] } of crawlers) {
    if (rate?.interval > 0) slow.set(rate.interval, [...(slow.get(rate.interval) ?? []), name]);
  }
  const speed = [...slow].slice(0, 3).map(([interval, names]) => quoted(`${listed(names, 3)}: one page every ${duration(interval)}. `, 200));
  return [
    ["Speed", speed.length === 0 ? "No limit for these crawlers." : speed],
    ["Sitemaps", maps],
    ["If the file fails", ["What if it ", ask("503", "answers 503"), ", ", ask("404", "404"), ", ", ask("page", "a web page"), ", or ", ask("timeout", "nothing"), "?"]],
  ].map(([title, said]) => el("div", {}, el("dt", {}, title), el("dd", {}, said)));
}

function ask(name, words) {
  return el("button", { type: "button", class: "link", "data-if": name }, words);
}
