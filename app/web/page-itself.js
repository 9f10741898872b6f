// What a page itself says, beside the verdict on its URL: the service fetches one page when the user asks.

import { el, quoted } from "./text.js";
import { nameOf } from "./crawlers.js";
import { pageItself, ServiceError } from "./api.js";

const NO = { index: "not to be shown in search results", follow: "to follow no link", archive: "to keep no copy", snippet: "to show no part of it" };
const MOST_NAMED = 5;

export class PagesThemselves {
  constructor() {
    this.clear();
  }

  /** Forget all pages, and ask nothing more. */
  clear() {
    this._asking?.abort();
    this._asking = new AbortController();
    this._said = new Map();
  }

  /** What is known of the page of a row, for its crawler; at first a button that has it fetched. */
  of(row) {
    const key = `${row.agent} ${row.url}`;
    if (!this._said.has(key)) {
      const button = el("button", { type: "button", class: "link" }, "What does the page itself say?");
      const said = el("div", { class: "page-itself", role: "status" }, button);
      button.addEventListener("click", () => this._ask(row, said));
      this._said.set(key, said);
    }
    return this._said.get(key);
  }

  async _ask(row, said) {
    said.replaceChildren("Fetching the page: the service asks no faster than the site permits …");
    try {
      said.replaceChildren(...saidOf(await pageItself(row.url, nameOf(row), this._asking.signal)));
    } catch (error) {
      if (error instanceof ServiceError) said.replaceChildren(quoted(error.message, 300));
      else if (error.name !== "AbortError") throw error;
    }
  }
}

/** What a page says, and whether what it loads is closed, as nodes. */
function saidOf({ page, rules, sources, notes, ...permits }) {
  if (page.outcome !== "read") return [el("p", {}, "The page was not read. ", quoted(page.detail, 300))];
  const asks = Object.keys(NO).filter((name) => !permits[name] && permits.decided_by[name]?.where !== "robots.txt");
  const where = [...new Set(sources.map((it) => (it.where.startsWith("header") ? "X-Robots-Tag" : "a meta tag")))].join(" and ");
  const wish = asks.length === 0 ? "The page itself permits to be shown in search results" : `The page itself asks ${asks.map((name) => NO[name]).join(", ")}`;
  const closed = page.loads.filter(({ verdict }) => verdict === "disallow");
  const loads = page.loads.length === 1 ? "one style sheet or script" : `${page.loads.length} style sheets and scripts`;
  const shut = closed.slice(0, MOST_NAMED).map(({ url, line }) => el("li", {}, el("code", {}, quoted(new URL(url).pathname, 100)), line === null ? "" : `, line ${line}`));
  return [
    el("p", {}, wish, rules.length > 0 && [": ", el("code", {}, quoted(rules.join(", "), 300)), ` (${where})`], "."),
    ...notes.map(({ message }) => el("p", { class: "stale" }, quoted(message, 500))),
    page.loads.length > 0 && el("p", {}, closed.length === 0 ? `It loads ${loads} of this site: open.` : `Closed to the crawler, which may so see another page than people do, ${closed.length} of the ${loads} that it loads:`),
    closed.length > 0 && el("ul", {}, shut),
    page.other_origins > 0 && el("p", {}, `What it loads of other sites (${page.other_origins.toLocaleString("en")}) was not looked at.`),
  ].filter(Boolean);
}
