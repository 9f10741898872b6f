// The answer to the question: the table of verdicts, and the explanation of the chosen one.

import { showChanges } from "./changes.js";
import { compared } from "./expectations.js";
import { crawlersOf } from "./crawlers.js";
import { explanation } from "./why.js";
import { blocked, exported } from "./export.js";
import { factsOf } from "./facts.js";
import { inReadersTime, instant, VERDICTS } from "./labels.js";
import { kindsOfCrawlers } from "./presets.js";
import { Listing } from "./listing.js";
import { ofChange, ofWebPage, QUESTION, sentence, shares, withoutFile } from "./sentence.js";
import { originOf } from "./file-source.js";
import { WhatIf } from "./what-if.js";
import { PagesThemselves } from "./page-itself.js";
import { Pace } from "./pace.js";
import { SiteSitemaps } from "./site-sitemaps.js";
import { RowDetails } from "./row-details.js";
import { Table } from "./table.js";
import { TableFilter } from "./table-filter.js";
import { count, el, linesOf, plain, quoted } from "./text.js";

const MOST_ROWS = 200;
const FEW_URLS = 10;

const at = (id) => document.getElementById(id);

export class Answer {
  /** The `editor` of both versions; `testUrls(urls)` is called when the user wants to test URLs that the page has found. */
  constructor(editor, testUrls) {
    this._editor = editor;
    this._sitemaps = new SiteSitemaps(testUrls);
    this._kinds = null;
    this._table = new Table(at("table"), at("why"), (row, column) => this._choose(row, column));
    this._filter = new TableFilter(at("filters"), () => this._filtered());
    this._listing = new Listing(editor, at("listing-facts"), at("next-warning"));
    this._whatIf = new WhatIf(at("what-if"), at("facts"), () => ({
      text: this._version.text,
      url: this._read.urls[this.chosen[0]].text,
      agents: this._read.agents.map(({ text }) => text),
    }));
    this._pace = new Pace(at("pace-body"));
    this._details = new RowDetails();
    this._pages = new PagesThemselves();
    this._sides = [...document.querySelectorAll("input[name=side]")];
    for (const radio of this._sides) {
      radio.addEventListener("change", () => {
        editor.side = Number(radio.value);
        this._filter.picks = null; // it is of a line of the other version
        this._filtered();
        this._showSide();
      });
    }
    at("more-rows").addEventListener("click", () => {
      this._most += MOST_ROWS;
      this._draw();
    });
    at("all-rows").addEventListener("click", () => {
      this._filter.picks = null;
      this._filtered();
      editor.focus();
    });
    this._versions = null;
    this._read = null;
    this._service = null;
    this._lines = [];
    this._most = MOST_ROWS;
    this.chosen = [0, 0];
  }

  /** The row and column of the chosen verdict. */
  get chosen() {
    return this._chosen;
  }

  set chosen(chosen) {
    this._chosen = chosen;
    this._asked = null;
  }

  /** Whether an answer is shown, even if it is out of date. */
  get isShown() {
    return this._versions !== null;
  }

  /** Whether an answer to the present question is shown. */
  get isCurrent() {
    return this.isShown && at("stale").hidden;
  }

  /** The version that is explained: 0 or 1. */
  get side() {
    return this._editor.side;
  }

  /** The version that is explained; the one that the editor shows may not be tested yet. */
  get _version() {
    return this._versions[this.side] ?? this._versions[0];
  }

  /** Another version is shown. */
  turned() {
    for (const radio of this._sides) radio.checked = Number(radio.value) === this.side;
  }

  /** The chosen verdict as a question of its own: {urls, agents, column}, texts and the place of its dialect. */
  get chosenCell() {
    const [row, column] = this.chosen;
    const dialects = Math.max(this._read.dialects.length, 1);
    return { urls: this._read.urls[row].text, agents: this._read.agents[Math.floor(column / dialects)].text, column: column % dialects };
  }

  /** Draw all rows that the filter shows, to be printed; `release()` ends it. */
  drawAll() {
    if (!this.isShown) return;
    const most = this._most;
    this._most = Infinity;
    this._draw();
    this._most = most;
  }

  release() {
    if (!this.isShown) return;
    this._draw();
  }

  /** The rows that the filter shows in a format of `exported`. */
  export(format) {
    const [before, after] = this._versions;
    return exported(format, this._shown(), before.rows, after?.rows ?? null);
  }

  /** The blocked URLs of all rows, by the version that is explained, as a CSV file. */
  exportBlocked() {
    return blocked(this._lines, this._version.rows);
  }

  /** Remove the answer. */
  clear() {
    this._close();
    this._versions = null;
    this._table.clear();
    for (const id of ["filters", "picked", "more-rows", "exporting", "why", "pace", "changes", "shares", "notice"]) at(id).hidden = true;
    for (const id of ["summary", "chosen-said", "facts"]) at(id).replaceChildren();
    this._listing.none("");
    this._outdated(null);
  }

  /** Say a sentence in the place of the answer's. */
  say(...words) {
    at("sentence").replaceChildren(...words);
  }

  /** Mark the answer as out of date, if there is one, and say why. */
  outdate(why) {
    if (this.isShown) this._outdated(why);
  }

  /**
   * Show what the file says to `read`, the question with the lines that could be read. `versions` are one or two of the
   * file, each {text, truncated, rows, warnings}; `since` is the earlier version that the second is, or null; `origin` is
   * the one that the file belongs to, or null.
   */
  show(read, versions, since, origin) {
    const home = origin ?? originOf(read.urls[0]?.text ?? "");
    this._origin = origin;
    const lines = linesOfQuestion(read, (url) => originOf(url) !== home);
    if (!this._begin(read, lines, null)) return;
    this._versions = versions.map((version) => ({ ...version, lines: linesOf(version.text) }));
    this._since = since;
    this._end();
  }

  /** Show what the service decides about `read`; `service` is the ServiceView that knows more about each verdict. */
  showService(read, service) {
    const lines = linesOfQuestion(read, () => false);
    this._origin = null;
    if (!this._begin(read, lines, service)) return;
    this._versions = [{ text: "", lines: [], rows: read.rows, warnings: [] }];
    this._since = null;
    this._end();
  }

  /** Ask nothing more about the chosen verdict. */
  _close() {
    this._details.close();
    this._pages.clear();
    this._whatIf.clear();
    this._service?.close();
  }

  /** Forget the former answer; false if there is none to come. */
  _begin(read, lines, service) {
    this._outdated(null);
    this._close();
    this._service = service;
    this._read = read;
    this._lines = lines;
    this._filter.picks = null;
    if (read.rows.length > 0) return true;
    this.clear();
    this._table.show({ lines, urls: 0, isOwn: true, agents: read.agents.length, rows: [], others: null, back: false, picks: null, kinds: null });
    this.say("No line of the question can be read.");
    return false;
  }

  _end() {
    const { urls, rows } = this._read;
    const [before, after] = this._versions;
    at("summary").textContent = summary(this._read, this._lines, before, after, this._since);
    at("filters").hidden = urls.length <= FEW_URLS;
    if (at("filters").hidden) this._filter.reset();
    at("exporting").hidden = false;
    at("download-blocked").hidden = !rows.flat().some(({ verdict }) => verdict === "disallow");
    this._showChanges(before, after, this._since);
    at("why").hidden = false;
    this._choice(rows);
    this._most = MOST_ROWS;
    this._say();
    this._draw();
    this._showSide();
    this._learnKinds();
  }

  /**
   * Keep the chosen verdict, wherever it is in another question; without one, choose the first that a named crawler is
   * blocked by.
   */
  _choice(rows) {
    const isAsked = ({ url, agent, dialect }) => url === this._asked?.url && agent === this._asked.agent && dialect === this._asked.dialect;
    const isBlocked = ({ verdict, group }) => verdict === "disallow" && group?.token !== "*";
    const find = (is) => {
      const row = rows.findIndex((it) => it.some(is));
      return row < 0 ? null : [row, rows[row].findIndex(is)];
    };
    const kept = this._asked === null ? this._chosen : find(isAsked);
    const [row, column] = kept ?? find(isBlocked) ?? find(({ verdict }) => verdict === "disallow") ?? [0, 0];
    this._chosen = [Math.min(row, rows.length - 1), Math.min(column, rows[0].length - 1)];
  }

  /** What crawlers are for is known only after the first verdicts: it is not worth waiting for. */
  async _learnKinds() {
    this._kinds = await kindsOfCrawlers();
    if (this._kinds === null || this._sorted === this._read || !this.isShown) return;
    this._say();
    this._draw();
  }

  /** Say the answer in a sentence, the share of each purpose, and what else there is to know first. */
  _say() {
    const [before, after] = this._versions;
    const { agents, rows, dialects, sitemaps } = this._read;
    this._sorted = this._kinds === null ? null : this._read;
    const perAgent = Math.max(dialects.length, 1);
    const crawlers = crawlersOf(rows, perAgent, this._kinds);
    const newer = after !== undefined && this._since === null ? after : before;
    const isPage = newer.warnings.some(({ code }) => code === "html-body");
    this.say(...this._answered(crawlers, perAgent, isPage));
    const now = newer === before ? crawlers : crawlersOf(newer.rows, perAgent, this._kinds);
    const parts = this._kinds === null || perAgent > 1 ? [] : shares(now);
    at("shares").replaceChildren(...parts);
    at("shares").hidden = parts.length === 0;
    this._notice(isPage, newer);
    at("facts").replaceChildren(...factsOf(now, this._sitemaps.said(sitemaps, this._origin)));
    document.querySelector("[data-opens=ask-urls]").textContent = count(this._lines.length, "URL");
    document.querySelector("[data-opens=ask-agents]").textContent = count(agents.length, "crawler");
    at("compare").setAttribute("aria-pressed", String(after !== undefined));
  }

  _answered(crawlers, perAgent, isPage) {
    const [before, after] = this._versions;
    if (this._service !== null) {
      const origins = new Set(this._read.urls.map(({ text }) => originOf(text)));
      const without = origins.size === 1 ? withoutFile(before.rows[0][0]) : null;
      return without ?? sentence(crawlers, this._kinds !== null);
    }
    if (after !== undefined) {
      const others = crawlersOf(after.rows, perAgent, this._kinds);
      return this._since === null ? ofChange(crawlers, others, "your change") : ofChange(others, crawlers, `the file since ${instant(this._since.from)}`);
    }
    if (before.text.trim() === "" && this._origin === null) return [QUESTION];
    return isPage ? ofWebPage() : sentence(crawlers, this._kinds !== null);
  }

  _notice(isPage, newer) {
    const cut = newer.warnings.find(({ code }) => code === "file-truncated");
    const { unmet } = compared(this._lines, newer.rows);
    const status = this._service === null ? null : (this._versions[0].rows[0][0].robots?.status ?? null);
    const said = [
      isPage && "The server probably sends its error page with status 200. Let it answer 404, or put a robots.txt there.",
      cut && `Crawlers read only the first 512,000 bytes: line ${cut.line.toLocaleString("en")} and below do not count.`,
      status >= 500 && `Mend the server first: while robots.txt answers ${status}, search engines stop crawling; if that lasts, pages leave the index.`,
      unmet > 0 && `${count(unmet, "verdict")} ${unmet === 1 ? "is" : "are"} not as you expect.`,
    ].filter(Boolean);
    at("notice").textContent = said.join(" ");
    at("notice").hidden = said.length === 0;
  }

  /** The lines of the question that the filter shows, in its order. */
  _shown() {
    const [before, after] = this._versions;
    return this._filter.apply(this._lines, before.rows, after?.rows ?? null, this._since !== null);
  }

  _filtered() {
    if (!this.isShown) return;
    this._most = MOST_ROWS;
    this._draw();
  }

  /** Draw the table: the first of the rows that are shown, since browsers are slow with thousands. */
  _draw() {
    const [before, after] = this._versions;
    const shown = this._shown();
    this._table.show({
      lines: shown.slice(0, this._most),
      urls: this._read.urls.length,
      isOwn: this._read.dialects.length === 0,
      agents: this._read.agents.length,
      rows: before.rows,
      others: after?.rows ?? null,
      back: this._since !== null,
      picks: this._filter.picks,
      kinds: this._kinds,
    });
    this._table.mark(...this.chosen);
    at("filter-said").textContent = `${count(shown.length, "URL")} of ${this._lines.length.toLocaleString("en")}`;
    const left = shown.length - this._most;
    at("more-rows").hidden = left <= 0;
    at("more-rows").textContent = `Show more: ${left.toLocaleString("en")} URLs are left`;
    at("picked").hidden = this._filter.picks === null;
  }

  /** Show which URLs a line of the listed file decides. */
  pick(line) {
    const picks = this._decidedBy((row) => row.rule.line === line);
    const decided = this._versions[0].rows.map((row, at) => row.filter((_, column) => picks(at, column)).length);
    const urls = decided.filter((many) => many > 0).length;
    const verdicts = decided.reduce((sum, many) => sum + many, 0);
    this._filter.picks = urls > 0 ? picks : null;
    this._filtered();
    const first = decided.findIndex((many) => many > 0);
    if (urls > 0 && !picks(...this.chosen)) {
      this._choose(first, this._versions[0].rows[first].findIndex((_, column) => picks(first, column)));
    }
    this._table.reveal();
    at("picked").hidden = false;
    at("all-rows").hidden = urls === 0;
    at("picked-said").textContent =
      urls === 0 ? `Line ${line} decides none of these verdicts.` : `Line ${line} decides ${count(verdicts, "verdict")} on ${count(urls, "URL")}.`;
  }

  /** Whether a rule of the listed file decides a verdict, and `wanted` holds; with several files, only the listed one's. */
  _decidedBy(wanted) {
    const { rows } = this._version;
    const origin = originOf(rows[this.chosen[0]][0].url);
    const isListed = (row) => this._service === null || originOf(row.url) === origin;
    return (at, column) => {
      const row = rows[at][column];
      return row.reason === "rule" && wanted(row) && isListed(row);
    };
  }

  _countDecided() {
    const isDecided = this._decidedBy(() => true);
    const decided = new Map();
    this._version.rows.forEach((row, at) =>
      row.forEach(({ rule }, column) => isDecided(at, column) && decided.set(rule.line, (decided.get(rule.line) ?? 0) + 1)),
    );
    this._listing.count(decided);
  }

  _showChanges(before, after, since) {
    at("sides").hidden = after === undefined;
    at("changes").hidden = after === undefined;
    if (after === undefined) this._editor.side = 0;
    else showChanges(at("diff"), at("changes-facts"), ...(since === null ? [before.lines, after.lines] : [after.lines, before.lines]));
    at("second").textContent = since === null ? "your version" : "earlier version";
    at("changes-title").textContent =
      since === null ? "From the file to your version" : `From the version of ${instant(since.from)} to the file`;
  }

  _outdated(why) {
    at("answer").classList.toggle("outdated", why !== null);
    at("stale").hidden = why === null;
    at("stale-why").textContent = plain(why ?? "");
  }

  _choose(row, column) {
    this._chosen = [row, column];
    this._showChosen();
    const { url, agent, verdict, explanation } = this._version.rows[row][column];
    at("chosen-said").textContent = plain(`${VERDICTS[verdict] ?? verdict}: ${agent}, ${url}. ${inReadersTime(explanation.summary)}`);
  }

  /** Show the version that is selected for the explanation. */
  _showSide() {
    if (this._service === null) {
      this._listing.show(this._version);
      this._countDecided();
    }
    this._showChosen();
  }

  _showChosen() {
    const version = this._version;
    const row = version.rows[this.chosen[0]][this.chosen[1]];
    this._asked = row;
    this._table.mark(...this.chosen);
    if (this._service === null) return this._details.detail(row, version, (detail, trouble) => this._explain(detail, troubles(trouble)));
    const agent = this._read.agents[Math.floor(this.chosen[1] / Math.max(this._read.dialects.length, 1))].text;
    return this._service.detail(row, agent, this._listing, (detail, facts) => {
      this._countDecided();
      this._explain(detail, facts);
    });
  }

  _explain(row, facts = []) {
    const cut = this._version.warnings.find(({ code }) => code === "file-truncated");
    const home = originOf(this._read.urls[0].text);
    const isOfSite = this._service !== null || (this._origin !== null && originOf(row.url) === this._origin);
    const page = isOfSite ? this._pages.of(row) : "";
    at("why-body").replaceChildren(...explanation(row, cut, originOf(row.url) === home ? home : null, (line) => this._listing.reveal(line)), ...facts, page);
    this._listing.light(row);
    at("pace").hidden = !(row.explanation.schedule?.length > 1);
    this._pace.show(row);
  }
}

function troubles(trouble) {
  return trouble === null ? [] : [el("p", { class: "stale" }, quoted(`The details are missing: ${trouble}`, 700))];
}

/** The lines of the question for the table, in order: the answered and the invalid ones. */
function linesOfQuestion(read, isForeign) {
  const good = read.urls.map((url, row) => ({ ...url, row, foreign: isForeign(url.text) }));
  const bad = read.unread.urls.map(({ line, text, detail }) => ({ line, text, trouble: detail }));
  return [...good, ...bad].sort((left, right) => left.line - right.line);
}

const MOST_NAMED = 12;

/** For whom verdicts differ between two versions, and how many: one sentence, or none. */
function changedFor(rows, others) {
  const found = new Map();
  rows.forEach((row, at) =>
    row.forEach(({ agent, verdict }, column) => {
      if (verdict !== others[at][column].verdict) found.set(agent, (found.get(agent) ?? 0) + 1);
    }),
  );
  const named = [...found].slice(0, MOST_NAMED).map(([agent, many]) => `${agent} (${many.toLocaleString("en")})`);
  const more = found.size - named.length;
  return found.size === 0 ? [] : [plain(`Changed for ${named.join(", ")}${more > 0 ? ` and ${count(more, "other crawler")}` : ""}.`)];
}

function summary(read, lines, before, after, since) {
  const verdicts = before.rows.flat();
  const words = [["allow", "allowed"], ["disallow", "blocked"], ["defer", "to try later"], ["none", "without an answer"]];
  const counts = words.flatMap(([name, word], at) => {
    const number = verdicts.filter(({ verdict }) => verdict === name).length;
    return number > 0 || at < 2 ? [`${number.toLocaleString("en")} ${word}`] : [];
  });
  const parts = [`${count(verdicts.length, "verdict")}: ${counts.join(", ")}.`];
  // Expectations are of the newer version, which is the pasted second one, or the file beside an earlier one.
  const newer = after !== undefined && since === null ? after : before;
  if (after !== undefined) {
    parts.unshift(...changedFor(before.rows, after.rows));
    const changed = after.rows.flat().filter(({ verdict }, index) => verdict !== verdicts[index].verdict).length;
    const many = changed === 0 ? "none" : changed;
    if (since !== null) parts.push(`Since the earlier version, ${many} of them ${changed === 1 ? "has" : "have"} changed.`);
    else parts.push(`With your version, ${many} of them ${changed === 1 ? "changes" : "change"}.`);
  }
  const expectations = compared(lines, newer.rows);
  if (expectations.all > 0) {
    const met = expectations.unmet === 0 ? "All are" : `${expectations.unmet} ${expectations.unmet === 1 ? "is" : "are"} not`;
    parts.push(`${count(expectations.all, "verdict")} compared with what is expected: ${met} as expected.`);
  }
  const foreign = lines.filter((line) => line.foreign).length;
  if (foreign > 0) parts.push(`${count(foreign, "URL")} of another host: this file does not decide there.`);
  const unread = read.unread.urls.length + read.unread.agents.length;
  if (unread > 0) parts.push(`${count(unread, "line")} of the question could not be read.`);
  const partial = verdicts.filter((row) => row.partial).length;
  if (partial > 0) parts.push(`Only the first 512,000 bytes of the file are read: lines beyond them could change ${count(partial, "verdict")}.`);
  if (before.warnings.length > 0) parts.push(`${count(before.warnings.length, "warning")} about the file.`);
  return parts.join(" ");
}
