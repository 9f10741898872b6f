// Why the chosen verdict is what it is.

import { inFull, READ } from "./words.js";
import { count, el, quoted, shown } from "./text.js";
import { verdict } from "./table.js";

const KEYS = { allow: "Allow", disallow: "Disallow" };
const MAY = { allow: " may fetch", disallow: " may not fetch", defer: " is to wait before it fetches" };

/** The explanation of `row` as elements; `reveal(line)` is called when the user follows a line's number. */
export function explanation(row, reveal) {
  const told = row.explanation;
  return [
    el("p", { class: "verdict-line" }, verdict(row)),
    el("p", { class: "who" }, el("strong", {}, quoted(row.agent, 60)), MAY[row.verdict] ?? " asks for"),
    el("p", {}, el("code", {}, quoted(row.url, 400))),
    el("p", { class: "hint" }, `with the file read ${READ[row.dialect] ?? `as ${row.dialect}`}`),
    ...deciding(row, reveal),
    ...group(row, told),
    ...matches(row, told, reveal),
  ];
}

function deciding(row, reveal) {
  if (row.rule === null) return [el("h3", {}, "What decided"), el("p", {}, inFull(row))];
  const text = el("code", { class: "rule" }, quoted(row.rule.text, 300));
  const order =
    row.dialect === "draft1996"
      ? "Of the rules that match, the first in the file counts."
      : "Of the rules that match, the longest counts; of two as long, Allow.";
  return [
    el("h3", {}, "What decided"),
    el("p", {}, toLine(row.rule.line, reveal), " ", text),
    el("p", { class: "hint" }, order),
  ];
}

function group(row, told) {
  if (told === null) return [];
  const said = told.group.charAt(0).toUpperCase() + told.group.slice(1);
  const parts = [el("h3", {}, "Whose rules"), el("p", {}, quoted(said), ".")];
  if (row.group !== null && row.group.agents.length > 1) {
    const names = row.group.agents.slice(0, 20).flatMap((name, at) => [at > 0 && ", ", quoted(name, 60)]);
    const more = row.group.agents.length + row.group.more_agents - 20;
    parts.push(el("p", { class: "hint" }, "The group is for ", names, more > 0 && ` and ${more} more`, "."));
  }
  if (told.tokens.length > 1) {
    const tokens = told.tokens.slice(0, 20).flatMap((token, at) => [at > 0 && ", then ", el("code", {}, quoted(token, 60))]);
    parts.push(el("p", { class: "hint" }, "Looked up: ", tokens, "."));
  }
  return parts;
}

function matches(row, told, reveal) {
  if (told === null || row.group === null || row.reason === "implicit") return [];
  const title = el("h3", {}, "Every rule that matched");
  const path = el("p", { class: "hint" }, "The path was compared as ", el("code", {}, quoted(told.path, 300)));
  if (told.matched === 0) return [title, el("p", {}, "None did."), path];
  const rows = told.rules.map((rule, at) =>
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
  const more = told.matched - told.rules.length;
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
