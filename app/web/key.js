// The API key, if the service requires one. It is stored for this tab only: never in a link, and deleted with the tab.

import { plain } from "./text.js";

const NAME = "robots-decisions-key";
const SENDABLE = /^[\x21-\x7e]+$/;

export class KeyField {
  /** `forgets` is the button that deletes the key; it is shown while there is one. */
  constructor(form, forgets) {
    this._form = form;
    this._forgets = forgets;
    this._field = form.querySelector("input");
    this._said = form.querySelector(".said");
    this._waiting = new Set();
    this._from = null;
    this._key = kept();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this._give(this._field.value.trim());
    });
    forgets.addEventListener("click", () => {
      this._hold(null);
      document.getElementById("test").focus();
    });
    this._hold(this._key);
  }

  /** The key to send with requests, or null. */
  get key() {
    return this._key;
  }

  /**
   * Ask for another key than `used`, and say what is `wrong` with it (null if there was none). Resolves once the user
   * has entered one; rejects when `signal` aborts.
   */
  async wanted(wrong, used, signal) {
    signal.throwIfAborted();
    if (used !== this._key) return;
    this._show(wrong);
    await new Promise((resolve, reject) => {
      const given = () => {
        signal.removeEventListener("abort", gone);
        resolve();
      };
      const gone = () => {
        this._waiting.delete(given);
        reject(signal.reason);
      };
      signal.addEventListener("abort", gone, { once: true });
      this._waiting.add(given);
    });
  }

  /** Hide the form: the service has accepted the key `used`. */
  taken(used) {
    if (used !== this._key || this._form.hidden || this._waiting.size > 0) return;
    const within = this._form.contains(document.activeElement);
    this._form.hidden = true;
    this._forgets.hidden = this._key === null;
    this._field.value = "";
    if (within) (this._from ?? document.getElementById("verdicts")).focus({ preventScroll: this._from === null });
  }

  _show(wrong) {
    const at = document.activeElement;
    if (!this._form.contains(at)) this._from = at === document.body ? null : at;
    this._form.hidden = false;
    this._forgets.hidden = true;
    this._say(wrong ?? "This needs an API key, or the operator's token.", wrong !== null);
    this._field.focus();
    this._field.select();
  }

  _give(key) {
    if (!SENDABLE.test(key)) {
      this._say(key === "" ? "Paste your API key." : "Not a valid API key: use printable ASCII without spaces.", true);
      this._field.focus();
      return;
    }
    this._say("", false);
    this._hold(key);
    const waiting = [...this._waiting];
    this._waiting.clear();
    for (const given of waiting) given();
    if (waiting.length === 0) this.taken(key);
  }

  _say(text, wrong) {
    this._said.textContent = plain(text);
    this._said.classList.toggle("wrong", wrong);
    if (wrong) this._field.setAttribute("aria-invalid", "true");
    else this._field.removeAttribute("aria-invalid");
  }

  _hold(key) {
    this._key = key;
    this._forgets.hidden = key === null || !this._form.hidden;
    try {
      if (key === null) sessionStorage.removeItem(NAME);
      else sessionStorage.setItem(NAME, key);
    } catch {
      // Without session storage, the key is kept until the page is left.
    }
  }
}

function kept() {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null;
  }
}
