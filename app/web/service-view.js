// What the service decides now, verdict by verdict: its copy of the file, and what else has a say.

import { backoffs, decideInDetail, hasKey, held, refresh, ServiceError } from "./api.js";
import { el, linesOf } from "./text.js";
import { originOf } from "./file-source.js";
import { serviceFacts } from "./service-facts.js";

export class ServiceView {
  /** `waits` is what `backoffs` found; `again()` is called when the file of a site has been fetched again. */
  constructor(waits, again) {
    this._waits = waits;
    this._again = again;
    this._files = new Map();
    this._asking = null;
    this._listed = null;
  }

  /** What there is to know before the first verdict; throws ServiceError. */
  static async open(signal, again) {
    return new ServiceView(hasKey() ? await backoffs(signal) : null, again);
  }

  /** Ask nothing more. */
  close() {
    this._asking?.abort();
  }

  /**
   * Explain `row`, an answer, to `agent`: call `explain(row, facts)` with what is known, and again with the details once
   * they have come. The copy of the file is shown in `listing`.
   */
  async detail(row, agent, listing, explain) {
    this._asking?.abort();
    const mine = (this._asking = new AbortController());
    const origin = originOf(row.url);
    if (this._listed !== origin) {
      this._listed = null;
      listing.none("Asking the service …");
    }
    explain(row, this._facts(row));
    if (row.robots === undefined) return listing.none("");
    try {
      const [detail, file] = await Promise.all([decideInDetail({ ...row, agent }, mine.signal), this._file(origin)]);
      if (mine.signal.aborted) return undefined;
      if (this._listed !== origin) show(listing, file);
      this._listed = origin;
      explain(detail, this._facts(detail));
    } catch (error) {
      if (error instanceof ServiceError) listing.none(error.message);
      else if (error.name !== "AbortError") throw error;
    }
    return undefined;
  }

  _facts(row) {
    return serviceFacts(row, this._waits?.get(originOf(row.url)) ?? null, this._waits === null ? null : this._refresher(row.url));
  }

  /** The service's copy of the file, once for each origin. */
  _file(origin) {
    const never = new AbortController().signal;
    if (!this._files.has(origin)) this._files.set(origin, held(`${origin}/`, never));
    return this._files.get(origin);
  }

  _refresher(url) {
    const said = el("span", { class: "hint", role: "status" });
    const button = el("button", { type: "button", class: "link" }, "Fetch again");
    button.addEventListener("click", async () => {
      button.disabled = true;
      said.textContent = "Fetching …";
      try {
        await refresh(url, new AbortController().signal);
        this._again();
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        said.textContent = error.message;
        button.disabled = false;
      }
    });
    return el("span", {}, button, " ", said);
  }
}

function show(listing, { text, warnings }) {
  if (text === null) return listing.none("There is no file. Paste one to test what it would say.");
  return listing.show({ text, lines: linesOf(text), warnings }, true);
}
