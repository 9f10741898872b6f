// The question: URLs, crawlers, the dialects to compare, and the purposes to ask about.

import { count } from "./text.js";
import { EXAMPLE } from "./example.js";
import { LineNumbers } from "./line-numbers.js";
import { crawlersFor, crawlersOf, namedIn } from "./presets.js";
import { isComment, withExpectation } from "./expectations.js";
import { withScheme } from "./bare-host.js";
import { originOf } from "./file-source.js";
import { ServiceError } from "./api.js";
import { isXml, listText, UnusableList, urlsOf } from "./url-list.js";
import { takeDroppedFiles } from "./file-drop.js";

/** Stands before a path if no site was fetched: the text of a file says the same of every site. */
const ANY_SITE = "https://example.com";

const at = (id) => document.getElementById(id);

export class Question {
  /**
   * `changed()` is called when the user changes the question; `file()` is the text of the file, `site()` the origin that
   * it was fetched from, or null.
   */
  constructor(changed, file, site) {
    this._changed = changed;
    this._site = site;
    this._adding = null;
    this._given = EXAMPLE.agents;
    this._takeUrls();
    this._urls = new LineNumbers(at("urls"), at("urls-said"), () => this._edited());
    this._agents = new LineNumbers(at("agents"), at("agents-said"), () => this._edited());
    this._dialects = [...document.querySelectorAll("input[name=dialect]")];
    this._purposes = [...document.querySelectorAll("input[name=purpose]")];
    for (const tick of [...this._dialects, ...this._purposes]) tick.addEventListener("input", () => this._edited());
    at("urls-back").addEventListener("click", () => {
      this._urls.undo();
      this._urls.focus();
    });
    at("add-preset").addEventListener("click", () => this._add(at("preset").value, file()));
  }

  /** The texts that the user edits. */
  get boxes() {
    return [this._urls, this._agents];
  }

  /**
   * The lines that are neither blank nor comments: {urls, agents, dialects, purposes}, with what is expected of each URL.
   * Crawlers that an expectation names are asked about, too.
   */
  get asked() {
    const { dialects, purposes } = this.text;
    const urls = this._urls.asked.filter((line) => !isComment(line)).map((line) => this._whole(withExpectation(line)));
    const agents = this._agents.asked;
    const names = new Set(agents.map(({ text }) => text.toLowerCase()));
    for (const { line, expected } of urls) {
      const named = expected?.named ?? null;
      if (named === null || names.has(named.toLowerCase())) continue;
      names.add(named.toLowerCase());
      agents.push({ line: null, text: named, url: line });
    }
    return { urls, agents, dialects, purposes };
  }

  /** What the fields hold: {urls, agents, dialects, purposes}. */
  get text() {
    return { urls: this._urls.value, agents: this._agents.value, dialects: ticked(this._dialects), purposes: ticked(this._purposes) };
  }

  set text({ urls, agents, dialects, purposes }) {
    this._urls.value = urls;
    this._agents.value = agents;
    for (const tick of this._dialects) tick.checked = dialects.includes(tick.value);
    for (const tick of this._purposes) tick.checked = purposes.includes(tick.value);
    at("urls-replaced").hidden = true;
  }

  /** Whether there is something to ask; if not, say what is missing. */
  isComplete() {
    const { urls, agents } = this.asked;
    if (urls.length === 0) this._urls.tell([{ line: null, detail: "Enter at least one URL." }]);
    if (agents.length === 0) this._agents.tell([{ line: null, detail: "Enter at least one crawler." }]);
    return urls.length > 0 && agents.length > 0;
  }

  /** Mark the lines that cannot be read, and crawlers that may be meant otherwise: lists of {line, detail}. */
  tell({ urls, agents, misspelt = [] }) {
    // A crawler that an expectation names stands in a line of the URLs.
    const named = (lines) => lines.filter(({ url }) => url !== undefined).map((agent) => ({ ...agent, line: agent.url }));
    const listed = (lines) => lines.filter(({ url }) => url === undefined);
    this._urls.tell([...urls, ...named(agents)], named(misspelt));
    this._agents.tell(listed(agents), listed(misspelt));
  }

  /** Clear all error messages. */
  quiet() {
    this.tell({ urls: [], agents: [] });
  }

  /** Ask about a page of the site of `url` if all URLs are of others. */
  takeSite(url) {
    const origin = originOf(url);
    const before = this._urls.asked;
    if (origin === null || before.some(({ text }) => originOf(text) === origin)) return;
    const text = this._urls.value;
    this._urls.value = url;
    if (before.length > 0 && text !== EXAMPLE.urls) this._offerUndo(`${count(before.length, "URL")} of other sites replaced.`);
  }

  /** Ask about the crawlers that a fetched file names, and the well-known ones, unless the user has chosen some. */
  takeCrawlers(file) {
    if (![this._given, EXAMPLE.agents].includes(this._agents.value.trim())) return;
    this._given = crawlersFor(file).join("\n");
    this._agents.value = this._given;
  }

  _edited() {
    at("urls-replaced").hidden = true;
    this._changed();
  }

  _offerUndo(what) {
    at("urls-replaced-said").textContent = what;
    at("urls-replaced").hidden = false;
  }

  /** A line with the URL of its path or of its bare host. */
  _whole(line) {
    const path = line.text.startsWith("/");
    return { ...line, text: path ? `${this._site() ?? ANY_SITE}${line.text}` : withScheme(line.text) };
  }

  /** Take the URLs of a file that is chosen or dropped, and those of a sitemap that is pasted. */
  _takeUrls() {
    const chosen = at("url-list");
    chosen.addEventListener("change", () => {
      const [file] = chosen.files;
      if (file !== undefined) this._list(() => listText(file));
      chosen.value = ""; // so that the same file can be chosen again
    });
    takeDroppedFiles(at("ask-urls"), (file) => this._list(() => listText(file)));
    at("urls").parentElement.addEventListener("paste", (event) => {
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (!isXml(text)) return;
      event.preventDefault();
      event.stopPropagation(); // or CodeMirror would put it there as it is
      this._list(() => text);
    }, true);
  }

  /** Put URLs in the place of those in the field; it can be undone. */
  takeUrls(urls) {
    this._urls.value = urls.join("\n");
    this._edited();
    this._offerUndo(`${count(urls.length, "URL")} taken in the place of the former ones.`);
  }

  /** Put the URLs of a list or a sitemap in the place of those in the field, or say why it is not taken. */
  async _list(read) {
    try {
      this.takeUrls(urlsOf(await read()));
    } catch (error) {
      if (!(error instanceof UnusableList)) throw error;
      this._urls.tell([{ line: null, detail: error.message }]);
    }
  }

  /** Add the crawlers of a preset: those that the file names, or a category of the service's. */
  async _add(preset, file) {
    this._adding?.abort();
    const { signal } = (this._adding = new AbortController());
    try {
      const names = preset === "named" ? namedIn(file) : await crawlersOf(preset, signal);
      if (!signal.aborted) this._addNames(names);
    } catch (error) {
      if (error instanceof ServiceError) this._agents.tell([{ line: null, detail: error.message }]);
      else if (error.name !== "AbortError") throw error;
    }
  }

  /** Add the crawlers of a preset; those of the example make room. */
  _addNames(names) {
    if (names.length === 0) return this._agents.tell([{ line: null, detail: "This file names no crawler." }]);
    this.addCrawlers(names, this._agents.value === EXAMPLE.agents ? [] : this._agents.asked);
    return this._changed();
  }

  /** Ask about these crawlers, too: names or categories. */
  addCrawlers(names, before = this._agents.asked) {
    const known = new Set(before.map(({ text }) => text.toLowerCase()));
    this._agents.value = [...before.map(({ text }) => text), ...names.filter((name) => !known.has(name.toLowerCase()))].join("\n");
  }
}

function ticked(boxes) {
  return boxes.filter(({ checked }) => checked).map(({ value }) => value);
}
