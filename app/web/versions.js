// The known versions of a site's file; one of them can be compared with the current file.

import { el } from "./text.js";
import { found } from "./fetch-facts.js";
import { instant } from "./labels.js";
import { ServiceError, versions } from "./api.js";

const EARLIER = "";

export class VersionList {
  /** `choose(version)` is called when the user chooses a version; it resolves to true once that version is shown. */
  constructor(details, choose) {
    this._details = details;
    this._choose = choose;
    this._said = details.querySelector(".said");
    this._list = details.querySelector("ol");
    this._asking = null;
    this._chosen = null;
    this.forget();
    details.addEventListener("toggle", () => {
      if (details.open && this._unasked) this._ask();
    });
    this._list.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-index]");
      if (button !== null) choose(this._versions[Number(button.dataset.index)]);
    });
  }

  /** The site of the versions: {url, at, file, cut}: the time of the fetch, and whether it found a file, one that is cut. */
  get site() {
    return this._site;
  }

  /** The selected version as {id, from, until, truncated}, or null. */
  get chosen() {
    return this._chosen;
  }

  /** Offer the versions of a site; they are loaded when the list is opened. */
  offer(site) {
    this.forget();
    this._site = site;
    this._details.hidden = false;
  }

  /** Choose the version that a link names, {id, from}; false if it cannot be shown. */
  async find({ id, from }) {
    this._unasked = false;
    this._details.open = true;
    await this._ask();
    const version = this._versions.find((it) => it.id === id && it.from === from);
    if (version !== undefined) return this._choose(version);
    if (!this._unasked) this.complain("The version in this link is no longer known.");
    return false;
  }

  /** Hide the list and drop its versions. */
  forget() {
    this._asking?.abort();
    this._site = null;
    this._chosen = null;
    this._unasked = true;
    this._versions = [];
    this._list.replaceChildren();
    this._said.textContent = "";
    this._details.open = false;
    this._details.hidden = true;
  }

  /** Mark a version as selected, or none. */
  mark(version) {
    this._chosen = version && { id: version.id, from: version.from, until: version.until, truncated: version.truncated };
    for (const button of this._list.querySelectorAll("button")) {
      const { id, from } = this._versions[Number(button.dataset.index)];
      button.setAttribute("aria-pressed", String(id === version?.id && from === version.from));
    }
  }

  /** Clear the selection. */
  leave() {
    this.mark(null);
    this.say("");
  }

  /** Show a status message. */
  say(...parts) {
    this._said.replaceChildren(...parts);
    this._said.classList.remove("wrong");
  }

  /** Show an error message. */
  complain(text) {
    this._said.textContent = text;
    this._said.classList.add("wrong");
  }

  async _ask() {
    this._unasked = false;
    const { url, at, file } = this._site;
    const mine = (this._asking = new AbortController());
    this.say("Loading …");
    try {
      this._versions = await versions(url, mine.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof ServiceError)) throw error;
      this._unasked = true;
      this.complain(error.message);
      return;
    }
    if (mine.signal.aborted) return;
    this._list.replaceChildren(...this._versions.map((version, index) => row(version, index, at, file)));
    this.mark(this._chosen);
    if (!this._versions.some((version) => when(version, at) === EARLIER)) this.say("No earlier version is known.");
    else this.say(file ? "Choose a version to compare it with the file." : "Choose a version to test it.");
  }
}

/** "3 Nov 2026, 10:00 – 5 Nov 2026, 11:00 UTC" */
export function period({ from, until }) {
  return until === null ? `since ${instant(from)}` : `${instant(from).replace(" UTC", "")} – ${instant(until)}`;
}

function row(version, index, at, file) {
  const place = when(version, at);
  const parts = [el("span", { class: "period" }, period(version)), el("span", { class: "found" }, found(version), place)];
  // Without a current file there is nothing to compare with, so only a version with a file is useful.
  if (place !== EARLIER || (!file && version.outcome !== "successful")) return el("li", {}, el("div", { class: "version" }, parts));
  return el("li", {}, el("button", { type: "button", class: "version", "data-index": index, "aria-pressed": "false" }, parts));
}

/** A version relative to the fetch `at`: a link may show a file that has changed since. */
function when({ from, until }, at) {
  const fetched = at === null ? Infinity : Date.parse(at);
  if (Date.parse(from) > fetched) return " · later";
  return until === null || fetched < Date.parse(until) ? " · fetched version" : EARLIER;
}
