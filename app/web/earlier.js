// What the file of a site was before: the versions that the service knows, one of which can be looked at beside it.

import { el } from "./text.js";
import { found } from "./fetched.js";
import { instant } from "./words.js";
import { Trouble, versions } from "./api.js";

const EARLIER = "";

export class Earlier {
  /** `choose(version)` is called when the user chooses one; it comes to true once that one is shown. */
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

  /** Of what site there may be earlier versions: {url, at, file}, `file` whether it has one now, fetched `at`. */
  get site() {
    return this._site;
  }

  /** The version that is looked at, as {id, from, until}, or null. */
  get chosen() {
    return this._chosen;
  }

  /** Offer the versions of a site; they are asked for when somebody wants to see them. */
  offer(site) {
    this.forget();
    this._site = site;
    this._details.hidden = false;
  }

  /** Choose the version that a link names, {id, from}; false where it cannot be shown. */
  async find({ id, from }) {
    this._unasked = false;
    this._details.open = true;
    await this._ask();
    const version = this._versions.find((it) => it.id === id && it.from === from);
    if (version !== undefined) return this._choose(version);
    if (!this._unasked) this.complain("The version that the link names is not known any more.");
    return false;
  }

  /** Offer nothing. */
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

  /** Mark one as looked at, or none. */
  mark(version) {
    this._chosen = version === null ? null : { id: version.id, from: version.from, until: version.until };
    for (const button of this._list.querySelectorAll("button")) {
      const { id, from } = this._versions[Number(button.dataset.index)];
      button.setAttribute("aria-pressed", String(id === version?.id && from === version.from));
    }
  }

  /** Look at none. */
  leave() {
    this.mark(null);
    this.say("");
  }

  /** Say what has become of choosing one. */
  say(...parts) {
    this._said.replaceChildren(...parts);
    this._said.classList.remove("wrong");
  }

  /** Say what is in the way. */
  complain(text) {
    this._said.textContent = text;
    this._said.classList.add("wrong");
  }

  async _ask() {
    this._unasked = false;
    const { url, at, file } = this._site;
    const mine = (this._asking = new AbortController());
    this.say("Looking it up …");
    try {
      this._versions = await versions(url, mine.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Trouble)) throw error;
      this._unasked = true;
      this.complain(error.message);
      return;
    }
    if (mine.signal.aborted) return;
    this._list.replaceChildren(...this._versions.map((version, index) => row(version, index, at, file)));
    this.mark(this._chosen);
    if (!this._versions.some((version) => when(version, at) === EARLIER)) this.say("Nothing is known of what it was before this.");
    else this.say(file ? "Choose one to compare it with the file." : "Choose one to test it in the place of a file.");
  }
}

/** "3 Nov 2026, 10:00 – 5 Nov 2026, 11:00 UTC" */
export function period({ from, until }) {
  return until === null ? `since ${instant(from)}` : `${instant(from).replace(" UTC", "")} – ${instant(until)}`;
}

function row(version, index, at, file) {
  const place = when(version, at);
  const told = [el("span", { class: "period" }, period(version)), el("span", { class: "found" }, found(version), place)];
  // Where there is no file, one can only be put in its place.
  if (place !== EARLIER || (!file && version.outcome !== "successful")) return el("li", {}, el("div", { class: "version" }, told));
  return el("li", {}, el("button", { type: "button", class: "version", "data-index": index, "aria-pressed": "false" }, told));
}

/** Where a version lies, seen from the fetch `at`: a link may show a file that has been changed since. */
function when({ from, until }, at) {
  const fetched = at === null ? Infinity : Date.parse(at);
  if (Date.parse(from) > fetched) return " · later";
  return until === null || fetched < Date.parse(until) ? " · what was fetched" : EARLIER;
}
