// The explanation of the chosen verdict.

import { inFull, READ } from "./labels.js";
import { count, el, quoted, shown } from "./text.js";
import { verdict } from "./table.js";

const KEYS = { allow: "Allow", disallow: "Disallow" };
const MAY = { allow: " may fetch", disallow: " may not fetch", defer: " should wait before it fetches" };

/** The explanation of `row` as elements; `reveal(line)` is called when the user clicks a line number. */
export function explanation(row, reveal) {
  const details = row.explanation;
  return [
    el("p", { class: "verdict-line" }, verdict(row)),
    el("p", { class: "who" }, el("strong", {}, quoted(row.agent, 60)), MAY[row.verdict] ?? " asks for"),
    el("p", {}, el("code", {}, quoted(row.url, 400))),
    el("p", { class: "hint" }, `with the file read ${READ[row.dialect] ?? `as ${row.dialect}`}`),
    ...deciding(row, reveal),
    ...group(row, details),
    ...matches(row, details, reveal),
  ];
}

function deciding(row, reveal) {
  if (row.rule === null) return [el("h3", {}, "What decided"), el("p", {}, inFull(row))];
  const text = el("code", { class: "rule" }, quoted(row.rule.text, 300));
  const order =
    row.dialect === "draft1996"
      ? "Of the matching rules, the first in the file decides."
      : "Of the matching rules, the longest decides; if equally long, Allow.";
  return [
    el("h3", {}, "What decided"),
    el("p", {}, toLine(row.rule.line, reveal), " ", text),
    el("p", { class: "hint" }, order),
  ];
}

function group(row, details) {
  if (details === null) return [];
  const said = details.group.charAt(0).toUpperCase() + details.group.slice(1);
  const parts = [el("h3", {}, "Which group"), el("p", {}, quoted(said), ".")];
  if (row.group !== null && row.group.agents.length > 1) {
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
  if (details === null || row.group === null || row.reason === "implicit") return [];
  const title = el("h3", {}, "Every rule that matched");
  const path = el("p", { class: "hint" }, "Rules were matched against ", el("code", {}, quoted(details.path, 300)));
  if (details.matched === 0) return [title, el("p", {}, "None."), path];
  const rows = details.rules.map((rule, at) =>
    el(
      "tr",
      { class: at === 0 ? "first" : null },
      el("td", {}, toLine(rule.line, reveal)),
      el("td", { class: "pattern" }, el("code", {}, `${KEYS[rule.directive] ?? rule.directive}: `, shown(rule.pattern, 300))),
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
