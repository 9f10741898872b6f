// The sitemaps that a fetched file names: the service reads them when the user asks, and their URLs can be tested.

import { count, el, quoted } from "./text.js";
import { ServiceError, sitemapUrls } from "./api.js";

export class SiteSitemaps {
  /** `test(urls)` is called when the user wants them tested. */
  constructor(test) {
    this._test = test;
    this._origin = null;
    this._said = null;
    this._reading = null;
  }

  /** What is known of the sitemaps of a file; if it was fetched from `origin`, with a button that has them read. */
  said(sitemaps, origin) {
    const named = sitemaps.length === 0 ? "None is named." : `${count(sitemaps.length, "sitemap")} named. `;
    if (sitemaps.length === 0 || origin === null) return named;
    if (origin !== this._origin) {
      this._reading?.abort();
      this._origin = origin;
      this._said = el("span", { role: "status" }, named, this._button("Read its URLs", () => this._read()));
    }
    return this._said;
  }

  async _read() {
    const { signal } = (this._reading = new AbortController());
    this._said.replaceChildren("Reading: the service asks no faster than the site permits …");
    try {
      const found = await sitemapUrls(`${this._origin}/`, signal);
      if (!signal.aborted) this._show(found);
    } catch (error) {
      if (error instanceof ServiceError) this._said.replaceChildren(quoted(error.message, 300));
      else if (error.name !== "AbortError") throw error;
    }
  }

  _show({ urls, sitemaps, other_origins: others, complete, version }) {
    if (version === null) return this._said.replaceChildren("robots.txt cannot be read now, so no sitemap is known. Try again later.");
    const trouble = sitemaps.find(({ detail }) => detail !== "");
    const test = this._button(`Test ${urls.length === 1 ? "its URL" : `its ${count(urls.length, "URL")}`}`, () => this._test(urls));
    this._said.replaceChildren(
      urls.length > 0 ? test : "No URL of this site is listed.",
      others > 0 ? ` ${count(others, "URL")} of other sites left out.` : "",
      complete ? "" : " There are more.",
      trouble === undefined ? "" : el("span", {}, " ", quoted(trouble.url, 100), ": ", quoted(trouble.detail, 200)),
    );
    if (document.activeElement === document.body && urls.length > 0) test.focus({ preventScroll: true }); // the former button had it
    return undefined;
  }

  _button(words, act) {
    const button = el("button", { type: "button", class: "link" }, words);
    button.addEventListener("click", act);
    return button;
  }
}
