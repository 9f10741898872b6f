// The lines of a file as far as they are drawn: their keys and comments, and where a group ends. Which rules count is for the
// service to say.

import { el, MOST_SHOWN, shown } from "./text.js";

/** A line that names a crawler. */
export const AGENT = /^\s*user[- ]?agent/i;

/** The key and the comment of a line. */
export const PARTS = /^[^:#]{1,40}:|#.*/g;

const RULE = /^\s*(dis?s?al+ow|diasllow|disallaw|allow)/i;
const MEMBER = /^\s*(crawl-delay|request-rate|visit-time|robot-version|content-signal|content-usage|noindex|comment)\s*:/i;

/** A line with its key and comment separated. */
export function coloured(line) {
  const hash = line.indexOf("#");
  const end = Math.min(hash < 0 ? line.length : hash, MOST_SHOWN);
  const colon = line.indexOf(":");
  const key = colon > 0 && colon <= 40 && colon < end ? colon + 1 : 0;
  return [
    key > 0 && el("span", { class: AGENT.test(line) ? "key agent" : "key" }, shown(line.slice(0, key))),
    shown(end < MOST_SHOWN ? line.slice(key, end) : line.slice(key)),
    end < MOST_SHOWN && end < line.length && el("span", { class: "comment" }, shown(line.slice(end))),
  ].filter(Boolean);
}

/** The last line of the group that begins at line `first`: the one before the next group's. */
export function lastOf(lines, first, dialect) {
  const early = dialect === "seznam" || dialect === "v2";
  let [last, closed] = [first, false];
  for (let at = first - 1; at < lines.length; at += 1) {
    const line = lines[at];
    if (line.trim() === "") {
      if (dialect === "draft1996") break;
      continue;
    }
    if (AGENT.test(line)) {
      if (closed) break;
      last = at + 1;
    } else if (RULE.test(line) || MEMBER.test(line)) {
      closed = closed || RULE.test(line) || early;
      last = at + 1;
    }
  }
  return last;
}
