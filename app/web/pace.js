// The rates of a verdict's group through the UTC day, as a band and in words.

import { duration, origin, pace } from "./labels.js";
import { el, shown } from "./text.js";

const DAY = 24 * 60;
const MOST_LISTED = 60;

export class Pace {
  constructor(box) {
    this._box = box;
    this._spans = [];
    // The marker moves while the page is open; half a minute is the finest step that the band can show.
    setInterval(() => this._tick(), 30_000);
  }

  /** Draw the day of the verdict `row`. */
  show(row) {
    this._spans = (row.explanation?.schedule ?? []).map(({ start, end, rate }) => ({
      from: minutes(start),
      to: minutes(end),
      start,
      end,
      rate,
    }));
    this._row = row;
    this._marker = null;
    const limited = this._spans.some(({ rate }) => rate !== null);
    this._box.replaceChildren(limited ? this._day() : el("p", {}, nothing(row)), ...remarks(row));
    this._tick();
  }

  _day() {
    this._marker = el("div", { class: "now" }, el("span", { class: "now-text" }));
    this._sentence = el("p", { class: "now-sentence" });
    const band = el("div", { class: "band", "aria-hidden": "true" }, this._segments(), this._marker);
    const hours = [0, 3, 6, 9, 12, 15, 18, 21, 24].map((hour) => {
      const tick = el("span", { class: hour % 6 === 0 ? "hour" : "hour minor" }, `${String(hour).padStart(2, "0")}:00`);
      place(tick, hour * 60);
      return tick;
    });
    const axis = el("div", { class: "axis", "aria-hidden": "true" }, hours);
    return el("div", { class: "day" }, this._sentence, band, axis, this._list());
  }

  _segments() {
    const slowest = Math.max(...this._spans.map(({ rate }) => rate?.interval ?? 0));
    const fastest = Math.min(...this._spans.map(({ rate }) => rate?.interval ?? slowest));
    return this._spans.map(({ from, to, rate }) => {
      const segment = el("div", { class: rate === null ? "segment open" : "segment" });
      place(segment, from);
      segment.style.width = `${((to - from) / DAY) * 100}%`;
      segment.style.height = `${height(rate, fastest, slowest)}%`;
      segment.append(el("span", {}, rate === null ? "no limit" : duration(rate.interval)));
      return segment;
    });
  }

  _list() {
    const rows = this._spans.slice(0, MOST_LISTED).map((span) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, `${span.start}–${span.end}`),
        el("td", {}, el("div", { class: "paced" }, el("span", { class: "pace-of" }, pace(span.rate)), source(span.rate, this._row.dialect))),
        el("td", { class: "is-now" }),
      ),
    );
    this._listed = rows;
    const titles = ["UTC", "Pace", ""].map((title) => el(title ? "th" : "td", title ? { scope: "col" } : {}, title));
    const table = el("table", { class: "spans" }, el("thead", {}, el("tr", {}, titles)), el("tbody", {}, rows));
    const more = this._spans.length - rows.length;
    return el("div", { class: "box" }, table, more > 0 && el("p", { class: "hint" }, `and ${more} more spans of the day`));
  }

  _tick() {
    if (!this._marker) return;
    const now = new Date();
    const minute = now.getUTCHours() * 60 + now.getUTCMinutes();
    const text = now.toISOString().slice(11, 16);
    place(this._marker, minute);
    this._marker.classList.toggle("late", minute > DAY - 180);
    this._marker.firstChild.textContent = `now ${text}`;
    const at = this._spans.findIndex(({ from, to }) => from <= minute && minute < to);
    this._sentence.replaceChildren("Now, at ", el("time", {}, `${text} UTC`), ": ", el("strong", {}, pace(this._spans[at].rate)));
    this._listed.forEach((row, index) => {
      row.classList.toggle("current", index === at);
      row.lastChild.textContent = index === at ? "now" : "";
    });
  }
}

function source(rate, dialect) {
  return rate && el("span", { class: "source" }, origin(rate, dialect));
}

function minutes(clock) {
  const [hours, rest] = clock.split(":").map(Number);
  return hours * 60 + rest;
}

function place(element, minute) {
  element.style.left = `${(minute / DAY) * 100}%`;
}

/** Slower is taller, on a logarithmic scale. */
function height(rate, fastest, slowest) {
  if (rate === null) return 12;
  if (rate.interval <= 0 || fastest <= 0 || slowest === fastest) return slowest === fastest ? 76 : 30;
  return 42 + 50 * (Math.log(rate.interval / fastest) / Math.log(slowest / fastest));
}

function nothing(row) {
  if (row.reason === "unavailable") return "Without a robots.txt, no crawl rate limit applies.";
  if (!row.group) return "This file has no rules for this crawler, so no crawl rate limit applies.";
  return "No crawl rate limit applies, at any time of the day.";
}

/** Other statements of the group; none of them changes a verdict. */
function remarks(row) {
  const said = [];
  const obeyed = row.explanation?.schedule?.some(({ rate }) => rate?.source === "crawl-delay") ?? false;
  if (row.crawl_delay && !obeyed) {
    said.push(`A Crawl-delay of ${duration(row.crawl_delay)} is declared, but it does not set the rate here.`);
  }
  if (row.visit) {
    const next = row.visit.next_open === null ? "" : `; next from ${row.visit.next_open.slice(11, 16)} UTC`;
    said.push(row.visit.now ? "Visit-time welcomes a visit now." : `Visit-time does not welcome a visit now${next}.`);
  }
  for (const [name, title] of [["content_usage", "Content-Usage"], ["content_signal", "Content-Signal"]]) {
    const stated = Object.entries(row.usage?.[name] ?? {}).map(([key, value]) => `${key}=${value}`);
    if (stated.length > 0) said.push(`${title} states ${stated.join(", ")}.`);
  }
  return said.map((text) => el("p", { class: "remark" }, shown(text)));
}
