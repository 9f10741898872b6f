// The explanation of the chosen verdict.

import { inReadersTime, PURPOSE_STATES, PURPOSES, READ } from "./labels.js";
import { count, el, quoted, shown } from "./text.js";
import { addressOf, verdict } from "./table.js";
import { nameOf } from "./crawlers.js";

const KEYS = { allow: "Allow", disallow: "Disallow" };
const MAY = { allow: " may fetch ", disallow: " may not fetch ", defer: " waits before it fetches ", none: " gets no answer for " };

/** Whether the user wants to see how verdicts are decided. */
let isOpen = false;

const PARTIAL = "Only the first 512,000 bytes of this file are read. Lines beyond them could change this verdict.";

/**
 * The explanation of `row` as elements. `cut` is the warning that crawlers do not read all of the file, if they do not;
 * `home` is the origin that need not be said; `reveal(line)` is called when the user clicks a line number.
 */
export function explanation(row, cut, home, reveal) {
  return [
    el("p", { class: "verdict-line" }, verdict(row)),
    el("p", { class: "who" }, el("strong", {}, quoted(nameOf(row), 60)), MAY[row.verdict] ?? " asks for ", addressOf(row.url, home)),
    el("p", { class: "summary" }, quoted(inReadersTime(row.explanation.summary), 700)),
    ...(row.notes ?? []).map(({ message }) => el("p", { class: "stale" }, quoted(message, 700))),
    row.partial && el("p", { class: "stale" }, cut ? `${cut.message} The lines from ${cut.line.toLocaleString("en")} on could change this verdict.` : PARTIAL),
    ...purposes(row, reveal),
    how(row, reveal),
  ].filter(Boolean);
}

/** How the verdict was decided, folded until the user opens it. */
function how(row, reveal) {
  const details = row.explanation;
  const read = row.dialect !== "" && el("p", { class: "hint" }, `The file was read ${READ[row.dialect] ?? `as ${row.dialect}`}.`);
  const parts = [read, ...deciding(row, reveal), ...group(row, details), ...matches(row, details, reveal)];
  const folded = el("details", { open: isOpen }, el("summary", {}, "How this was decided"), parts);
  folded.addEventListener("toggle", () => {
    isOpen = folded.open;
  });
  return folded;
}

function deciding(row, reveal) {
  // An override's rules are not of the file that is shown.
  if (!row.rule || row.reason === "overridden") return [];
  const order =
    row.dialect === "draft1996"
      ? "Of the rules that match, the first in the file decides."
      : "Of the rules that match, the longest decides; Allow wins if two are equally long.";
  return [
    el("h3", {}, "What decided"),
    el("p", {}, toLine(row.rule.line, reveal), " ", el("code", { class: "rule" }, quoted(row.rule.text, 300))),
    el("p", { class: "hint" }, order),
  ];
}

/** What the site states about the purposes that were asked about. */
function purposes(row, reveal) {
  const stated = Object.entries(row.purposes ?? {});
  if (stated.length === 0) return [];
  const list = stated.flatMap(([name, { state, directive, line }]) => [
    el("dt", {}, PURPOSES[name] ?? name),
    el("dd", {}, PURPOSE_STATES[state] ?? state, line && [": ", toLine(line, reveal), " ", el("code", {}, quoted(directive ?? "", 100))]),
  ]);
  return [el("h3", {}, "Whether its use is permitted"), el("dl", { class: "facts" }, list)];
}

function written({ directive, pattern }) {
  return `${KEYS[directive] ?? directive}: ${pattern}`;
}

function group(row, details) {
  if (details.rules === undefined || row.reason === "overridden") return [];
  const said = details.group.charAt(0).toUpperCase() + details.group.slice(1);
  const parts = [el("h3", {}, "Which group"), el("p", {}, quoted(said), ".")];
  if (row.group && row.group.agents.length > 1) {
    const names = row.group.agents.slice(0, 20).flatMap((name, at) => [at > 0 && ", ", quoted(name, 60)]);
    const more = row.group.agents.length + row.group.more_agents - 20;
    parts.push(el("p", { class: "hint" }, "This group names ", names, more > 0 && ` and ${more} more`, "."));
  }
  if (details.tokens.length > 1) {
    const tokens = details.tokens.slice(0, 20).flatMap((token, at) => [at > 0 && ", then ", el("code", {}, quoted(token, 60))]);
    parts.push(el("p", { class: "hint" }, "Looked up: ", tokens, "."));
  }
  return parts;
}

function matches(row, details, reveal) {
  if (details.rules === undefined || !row.group || ["implicit", "overridden"].includes(row.reason)) return [];
  const title = el("h3", {}, "Every rule that matched");
  const path = el("p", { class: "hint" }, "Path used for matching: ", el("code", {}, quoted(details.path, 300)));
  if (details.matched === 0) return [title, el("p", {}, "None."), path];
  const rows = details.rules.map((rule, at) =>
    el(
      "tr",
      { class: at === 0 ? "first" : null },
      el("td", {}, toLine(rule.line, reveal)),
      el("td", { class: "pattern" }, el("code", {}, shown(written(rule), 300))),
      el("td", { class: "length" }, rule.length.toLocaleString("en")),
      el("td", {}, at === 0 ? "decided" : ""),
    ),
  );
  const titles = [["Line"], ["Rule"], ["Length", "length"], [""]].map(([text, name]) =>
    el(text ? "th" : "td", { class: name, scope: text ? "col" : null }, text),
  );
  const table = el("table", { class: "matches" }, el("thead", {}, el("tr", {}, titles)), el("tbody", {}, rows));
  const more = details.matched - details.rules.length;
  return [
    title,
    el("div", { class: "box" }, table),
    more > 0 && el("p", { class: "hint" }, `and ${count(more, "rule")} more that matched`),
    path,
  ].filter(Boolean);
}

function toLine(line, reveal) {
  const button = el("button", { type: "button", class: "to-line" }, `line ${line}`);
  button.addEventListener("click", () => reveal(line));
  return button;
}
