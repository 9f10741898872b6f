// Who gained or lost what between two versions that a site served, as the service tells it.

import { briefly, DIALECTS, instant, pace, SIGNS } from "./words.js";
import { count, el, MOST_SHOWN, plain, quoted } from "./text.js";
import { differs, Trouble } from "./api.js";
import { Rows } from "./rows.js";

const MOST_NAMED = 12;
const MOST_SPANS = 6;
const KEYS = { allow: "Allow", disallow: "Disallow" };

export class Gains {
  /** `reader` is the field for the dialect that both are read in. */
  constructor(section, reader) {
    this._section = section;
    this._reader = reader;
    this._title = section.querySelector("h2");
    this._said = section.querySelector(".said");
    this._box = section.querySelector(".lines");
    this._rows = null;
    this._asking = null;
    this._asked = null;
    reader.addEventListener("change", () => this._ask());
  }

  /** Tell what changed on `site` from `version` to what was fetched. */
  show(site, version) {
    this._asked = { site, version };
    this._section.hidden = false;
    this._title.textContent = `Who gained or lost what since ${instant(version.from)}`;
    return this._ask();
  }

  /** Tell nothing. */
  hide() {
    this._asking?.abort();
    this._section.hidden = true;
    this._clear();
  }

  async _ask() {
    this._asking?.abort();
    const mine = (this._asking = new AbortController());
    const { site, version } = this._asked;
    this._clear();
    this._say("Comparing …");
    try {
      const answer = await differs(site.url, version.id, site.at, this._reader.value, mine.signal);
      if (!mine.signal.aborted) this._tell(answer);
    } catch (error) {
      if (error instanceof Trouble) this._say(error.message, true);
      else if (error.name !== "AbortError") throw error;
    }
  }

  _tell(answer) {
    const told = [...answer.agents.flatMap(ofAgents), ...ofSitemaps(answer)];
    this._say(inShort(answer));
    this._box.hidden = told.length === 0;
    this._rows = new Rows(
      this._box,
      told.length,
      (index) => told[index].weight,
      (index) => told[index].draw(),
    );
  }

  _clear() {
    this._rows?.close();
    this._rows = null;
    this._box.replaceChildren();
    this._box.hidden = true;
  }

  _say(text, wrong = false) {
    this._said.textContent = plain(text);
    this._said.classList.toggle("wrong", wrong);
  }
}

function inShort({ dialect, agents, truncated, to }) {
  const name = DIALECTS[dialect] ?? dialect;
  const all = agents.flatMap((change) => change.agents);
  const named = all.filter((agent) => agent !== "*").length;
  const whom = [named < all.length && "all who are not named", named > 0 && count(named, "named crawler")].filter(Boolean);
  const parts = [
    all.length === 0
      ? `Read as ${name}, the two permit everybody the same.`
      : `Read as ${name}, something changed for ${whom.join(" and for ")}. A path was tried for every rule of the two; what stands before an arrow is of the earlier one.`,
  ];
  if (to.until !== null) parts.push(`The later one was held until ${instant(to.until)}.`);
  if (truncated) parts.push("There is more than is compared at once: this is a part of it.");
  return parts.join(" ");
}

/** The rows about those for whom the same changed. Each has its weight in characters, and is drawn when it is seen. */
function ofAgents(change) {
  const { agents, added, removed, paths, rates } = change;
  return [
    { weight: 200, draw: () => el("h3", { class: "whose" }, names(agents), el("span", { class: "much" }, much(change))) },
    ...paths.map((path) => ({ weight: weight(path.path) + 120, draw: () => pathRow(path) })),
    ...removed.map((rule) => ({ weight: weight(rule.pattern) + 40, draw: () => ruleRow(rule, false) })),
    ...added.map((rule) => ({ weight: weight(rule.pattern) + 40, draw: () => ruleRow(rule, true) })),
    ...(rates === null ? [] : [{ weight: 400, draw: () => ratesRow(rates) }]),
  ];
}

function ofSitemaps({ sitemaps_added: added, sitemaps_removed: removed }) {
  if (added.length + removed.length === 0) return [];
  const row = (url, isNew) => ({ weight: weight(url) + 20, draw: () => changeRow(isNew ? "new" : "gone", isNew ? "added" : "removed", url) });
  const title = { weight: 40, draw: () => el("h3", { class: "whose" }, "Sitemaps") };
  return [title, ...removed.map((url) => row(url, false)), ...added.map((url) => row(url, true))];
}

function weight(text) {
  return Math.min(text.length, MOST_SHOWN);
}

function names(agents) {
  const named = agents.slice(0, MOST_NAMED).flatMap((name, at) => [at > 0 && ", ", name === "*" ? "all who are not named (*)" : quoted(name, 60)]);
  return [...named, agents.length > MOST_NAMED && ` and ${(agents.length - MOST_NAMED).toLocaleString("en")} more`];
}

function much({ added, removed, paths, rates }) {
  const number = (wanted) => paths.filter(({ gained }) => gained === wanted).length;
  const parts = [
    [number(false), (n) => `${count(n, "path")} lost`],
    [number(true), (n) => `${count(n, "path")} gained`],
    [number(null), (n) => `${count(n, "path")} closed in another way`],
    [removed.length, (n) => `${count(n, "rule")} removed`],
    [added.length, (n) => `${count(n, "rule")} added`],
  ].flatMap(([n, words]) => (n > 0 ? [words(n)] : []));
  return [...parts, ...(rates === null ? [] : ["another pace"])].join(", ");
}

function pathRow({ path, gained, before, after }) {
  const kind = gained === null ? "moved" : gained ? "new" : "gone";
  const word = { moved: "changed", new: "gained", gone: "lost" }[kind];
  return changeRow(kind, word, path, el("span", { class: "because-of" }, side(before), " → ", side(after)));
}

/** What one version says of a path. */
function side({ verdict, reason, rule }) {
  const decided = briefly({ rule, reason });
  return el("span", { class: "side" }, `${SIGNS[verdict] ?? ""} ${verdict}, ${decided} `, rule && el("code", {}, quoted(written(rule), 300)));
}

function ruleRow(rule, isNew) {
  return changeRow(isNew ? "new" : "gone", isNew ? `rule added, line ${rule.line}` : `rule removed, line ${rule.line}`, written(rule));
}

function written({ directive, pattern }) {
  return `${KEYS[directive] ?? directive}: ${pattern}`;
}

function changeRow(kind, word, text, ...more) {
  return el(
    "div",
    { class: `line gain ${kind}` },
    el("span", { class: "step", "aria-hidden": "true" }, { new: "+", gone: "−", moved: "•" }[kind]),
    el("span", { class: "what" }, word),
    el("div", { class: "text" }, el("code", { dir: "ltr" }, quoted(text)), more),
  );
}

function ratesRow({ before, after }) {
  return el(
    "div",
    { class: "line gain moved" },
    el("span", { class: "step", "aria-hidden": "true" }, "•"),
    el("span", { class: "what" }, "pace"),
    el("div", { class: "text paces" }, day(before), " → ", day(after)),
  );
}

/** The pace of a day in a few words, with its hours where it has more than one. */
function day(spans) {
  if (spans.length === 1) return withLine(spans[0].rate);
  const told = spans.slice(0, MOST_SPANS).map(({ start, end, rate }) => `${start}–${end} ${withLine(rate)}`);
  if (spans.length > MOST_SPANS) told.push(`${spans.length - MOST_SPANS} more`);
  return told.join(", ");
}

function withLine(rate) {
  return rate === null || rate.line === null ? pace(rate) : `${pace(rate)} (line ${rate.line})`;
}
