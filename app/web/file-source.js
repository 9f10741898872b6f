// Where the file in the field comes from: the site that it was fetched from, or nothing that is known.

import { plain } from "./text.js";

/** The origin of an absolute URL, as in "https://shop.example", or null. */
export function originOf(url) {
  const scheme = /^https?:\/\//i.test(url);
  return scheme && URL.canParse(url) ? new URL(url).origin : null;
}

export class FileSource {
  /** `field` is the site field, `said` its status line. */
  constructor(field, said) {
    this._field = field;
    this._said = said;
    this._origin = null;
    this._facts = "";
    this._isCut = false;
  }

  /** Whether the file in the field is the beginning of a longer one, whose end is not read. */
  get isCut() {
    return this._isCut;
  }

  /** The origin that the file was fetched from, or null. */
  get origin() {
    return this._origin;
  }

  /** The text of the site field. */
  get site() {
    return this._field.value.trim();
  }

  set site(text) {
    this._field.value = text;
  }

  /** Note that the file in the field is one of the site of `url`, `isCut` or whole, and say the facts of its fetch, if any. */
  fetched(url, isCut, facts = "") {
    this._origin = originOf(url);
    this._isCut = isCut;
    this._facts = facts;
    if (facts !== "") this.say(facts);
  }

  /** What is known of the file in the field, for `restore`; null if nothing is. */
  now() {
    const { _origin: origin, _facts: facts, _isCut: isCut } = this;
    return origin && { origin, facts, isCut, said: this._said.textContent };
  }

  /** The file in the field is the one again of which this was known. */
  restore(former) {
    if (former === null) return this.forget();
    Object.assign(this, { _origin: former.origin, _facts: former.facts, _isCut: former.isCut });
    return this.say(former.said);
  }

  /** Say that the text of the file has been edited, or that all of it was replaced. */
  edited(replaced) {
    if (this._origin === null) return this.say("");
    if (replaced) this.forget();
    else if (this._facts !== "") this.say(`${this._facts} · edited since`);
  }

  /** Forget the site: the file in the field is not known to come from it. */
  forget() {
    this._origin = null;
    this._facts = "";
    this._isCut = false;
    this.say("");
  }

  say(text, wrong = false) {
    this._said.textContent = plain(text);
    this._said.classList.toggle("wrong", wrong);
    if (wrong) this._field.setAttribute("aria-invalid", "true");
    else this._field.removeAttribute("aria-invalid");
  }
}
