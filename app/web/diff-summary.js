// A summary of `GET v1/robots/diff`: what changed for which crawler from one version to another.

import { briefly, DIALECTS, instant, pace, SIGNS, VERDICTS } from "./labels.js";
import { count, el, plain, quoted } from "./text.js";
import { differs, ServiceError } from "./api.js";
import { fillList } from "./long-list.js";

const MOST_NAMED = 12;
const MOST_SPANS = 6;
const KEYS = { allow: "Allow", disallow: "Disallow" };

export class DiffSummary {
  /** `reader` is the field with the dialect of both versions. */
  constructor(section, reader) {
    this._section = section;
    this._reader = reader;
    this._title = section.querySelector("h2");
    this._said = section.querySelector(".said");
    this._box = section.querySelector(".lines");
    this._asking = null;
    this._asked = null;
    reader.addEventListener("change", () => this._ask());
  }

  /** Show what changed on `site` from `version` to the fetched file. */
  show(site, version) {
    this._asked = { site, version };
    this._section.hidden = false;
    this._title.textContent = `What changed for whom since ${instant(version.from)}`;
    return this._ask();
  }

  /** Hide the summary. */
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
      if (error instanceof ServiceError) this._say(error.message, true);
      else if (error.name !== "AbortError") throw error;
    }
  }

  _tell(answer) {
    const rows = [...answer.agents.flatMap(ofAgents), ...ofSitemaps(answer)];
    this._say(inShort(answer));
    this._box.hidden = rows.length === 0;
    fillList(this._box, rows, (draw) => draw());
  }

  _clear() {
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
  const whom = [named < all.length && "all other crawlers", named > 0 && count(named, "named crawler")].filter(Boolean);
  const parts = [
    all.length === 0
      ? `Read as ${name}, both versions give every crawler the same access.`
      : `Read as ${name}, something changed for ${whom.join(" and for ")}. One path per rule was tested; the earlier version stands before the arrow.`,
  ];
  if (to.until !== null) parts.push(`The later version was current until ${instant(to.until)}.`);
  if (truncated) parts.push("The comparison is truncated: only a part of it is shown.");
  return parts.join(" ");
}

/** What draws each row for agents with the same changes. */
function ofAgents(change) {
  const { agents, added, removed, paths, rates } = change;
  return [
    () => el("h3", { class: "whose" }, names(agents), el("span", { class: "much" }, much(change))),
    ...paths.map((path) => () => pathRow(path)),
    ...removed.map((rule) => () => ruleRow(rule, false)),
    ...added.map((rule) => () => ruleRow(rule, true)),
    ...(rates === null ? [] : [() => ratesRow(rates)]),
  ];
}

function ofSitemaps({ sitemaps_added: added, sitemaps_removed: removed }) {
  if (added.length + removed.length === 0) return [];
  const title = () => el("h3", { class: "whose" }, "Sitemaps");
  return [title, ...removed.map((url) => () => changeRow("gone", "removed", url)), ...added.map((url) => () => changeRow("new", "added", url))];
}

function names(agents) {
  const named = agents.slice(0, MOST_NAMED).flatMap((name, at) => [at > 0 && ", ", name === "*" ? "all other crawlers (*)" : quoted(name, 60)]);
  return [...named, agents.length > MOST_NAMED && ` and ${(agents.length - MOST_NAMED).toLocaleString("en")} more`];
}

function much({ added, removed, paths, rates }) {
  const number = (wanted) => paths.filter(({ gained }) => gained === wanted).length;
  const parts = [
    [number(false), (n) => `${count(n, "path")} lost`],
    [number(true), (n) => `${count(n, "path")} gained`],
    [number(null), (n) => `${count(n, "path")} with another reason`],
    [removed.length, (n) => `${count(n, "rule")} removed`],
    [added.length, (n) => `${count(n, "rule")} added`],
  ].flatMap(([n, words]) => (n > 0 ? [words(n)] : []));
  return [...parts, ...(rates === null ? [] : ["another rate"])].join(", ");
}

function pathRow({ path, gained, before, after }) {
  const kind = gained === null ? "moved" : gained ? "new" : "gone";
  const word = { moved: "changed", new: "gained", gone: "lost" }[kind];
  return changeRow(kind, word, path, el("span", { class: "because-of" }, side(before), " → ", side(after)));
}

/** The verdict of one version on a path. */
function side({ verdict, reason, rule }) {
  const decided = briefly({ rule, reason });
  return el("span", { class: "side" }, `${SIGNS[verdict] ?? ""} ${VERDICTS[verdict] ?? verdict}, ${decided} `, rule && el("code", {}, quoted(written(rule), 300)));
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
    { class: `line change ${kind}` },
    el("span", { class: "step", "aria-hidden": "true" }, { new: "+", gone: "−", moved: "•" }[kind]),
    el("span", { class: "what" }, word),
    el("div", { class: "text" }, el("code", { dir: "ltr" }, quoted(text)), more),
  );
}

function ratesRow({ before, after }) {
  return el(
    "div",
    { class: "line change moved" },
    el("span", { class: "step", "aria-hidden": "true" }, "•"),
    el("span", { class: "what" }, "rate"),
    el("div", { class: "text paces" }, day(before), " → ", day(after)),
  );
}

/** The rates of a day in a few words, with hours if there are several. */
function day(spans) {
  if (spans.length === 1) return withLine(spans[0].rate);
  const parts = spans.slice(0, MOST_SPANS).map(({ start, end, rate }) => `${start}–${end} ${withLine(rate)}`);
  if (spans.length > MOST_SPANS) parts.push(`${spans.length - MOST_SPANS} more`);
  return parts.join(", ");
}

function withLine(rate) {
  return rate === null || rate.line === null ? pace(rate) : `${pace(rate)} (line ${rate.line})`;
}
