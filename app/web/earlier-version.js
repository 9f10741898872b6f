// An earlier version of the fetched file: beside the current one, or in its place if there is none.

import { DiffSummary } from "./diff-summary.js";
import { el } from "./text.js";
import { period, VersionList } from "./versions.js";
import { ServiceError, version } from "./api.js";
import { setView } from "./view.js";

const at = (id) => document.getElementById(id);

export class EarlierVersion {
  /** The `editor`, `source`, the `state()` of the page, and `ask()`, which tests what is in the editor. */
  constructor(parts) {
    this._parts = parts;
    this._looking = null;
    this._versions = new VersionList(at("versions"), (wanted) => this._show(wanted));
    this._summary = new DiffSummary(at("diff-summary"), at("reader"));
    at("reader").addEventListener("change", () => {
      at("linked").hidden = true;
    });
  }

  /** The user may have changed the text beside the file: then it is not the selected version any more. */
  edited() {
    if (this.since !== null && this._parts.editor.texts[1] !== this._text) this._versions.leave();
  }

  /** The site whose versions are offered: {url, at, file, cut}, or null. */
  get site() {
    return this._versions.site;
  }

  /** The selected version as {id, from, until, truncated}, or null. */
  get chosen() {
    return this._versions.chosen;
  }

  /** The selected version if it is compared with the current file, or null. */
  get since() {
    return this.site?.file ? this.chosen : null;
  }

  /** The selected version as a link names it, {id, from, reader}, or null. */
  get link() {
    return this.chosen && { id: this.chosen.id, from: this.chosen.from, reader: at("reader").value };
  }

  /** Offer the versions of a site (see VersionList). */
  offer(site) {
    this._versions.offer(site);
  }

  /** Show the version that a link names; false if it cannot be shown. */
  find(link) {
    if ([...at("reader").options].some(({ value }) => value === link.reader)) at("reader").value = link.reader;
    return this._versions.find(link);
  }

  /** Hide what changed for whom. */
  hideSummary() {
    this._summary.hide();
  }

  /** Forget the versions of the last site, and leave a selected one in the editor for the caller to replace. */
  drop() {
    this._looking?.abort();
    this._versions.forget();
    this._summary.hide();
  }

  /** Show a version; true once it is shown. */
  async _show(wanted) {
    this._looking?.abort();
    const mine = (this._looking = new AbortController());
    const { site } = this;
    const { editor, source, state, ask } = this._parts;
    const before = state();
    at("linked").hidden = true;
    this._versions.say("Fetching …");
    try {
      const { text } = await version(site.url, wanted.id, mine.signal);
      if (mine.signal.aborted) return false;
      this._versions.mark(wanted);
      setView("text");
      this._text = text ?? "";
      editor.put(site.file ? [undefined, text ?? ""] : [text ?? ""], editor.side, before);
      if (!site.file) source.fetched(site.url, wanted.truncated);
      const comparison = this._summary.show(site, wanted);
      await Promise.all([ask(), comparison]);
      if (mine.signal.aborted) return false;
      this._versions.say(...this._seen(text), " ", toChanges());
      return true;
    } catch (error) {
      if (error instanceof ServiceError) this._versions.complain(error.message);
      else if (error.name !== "AbortError") throw error;
      return false;
    }
  }

  _seen(text) {
    const when = period(this.chosen);
    if (!this.site.file) return [`The field shows the file as it was, ${when}.`];
    if (text === null) return [`There was no file to compare, ${when}.`];
    return [`The second version is the file as it was, ${when}.`];
  }
}

function toChanges() {
  const button = el("button", { type: "button", class: "to-line" }, "See what changed");
  button.addEventListener("click", () => {
    at("diff-summary").focus();
    at("diff-summary").scrollIntoView();
  });
  return button;
}
