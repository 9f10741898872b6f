// What the user has typed, kept in this browser: neither a reload, a fetch, a link nor a closed tab loses it. A tab has its own,
// and a new one begins with the last.

import { checked } from "./state.js";
import { EXAMPLE } from "./example.js";

const NAME = "robots-decisions-draft";
const PAUSE = 400;
const LARGEST = 2_000_000;

export class Draft {
  /** `state()` is what the fields hold. */
  constructor(state) {
    this._state = state;
    this._timer = null;
    this._isLost = false;
    document.querySelector("main").addEventListener("input", () => this.changed());
    window.addEventListener("pagehide", () => this._flush());
    window.addEventListener("beforeunload", (event) => {
      this._flush();
      if (this._isLost) event.preventDefault();
    });
  }

  /** The state that was kept, and the fragment of the address that it belongs to: {address, state}, or null. */
  get kept() {
    for (const store of stores()) {
      try {
        const { address, state } = JSON.parse(store.getItem(NAME));
        return { address, state: checked(state) };
      } catch {
        // None is kept here, or one of another release.
      }
    }
    return null;
  }

  /** Keep what the fields hold, after a pause. */
  changed() {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._save(), PAUSE);
  }

  /** Delete what is kept. */
  clear() {
    clearTimeout(this._timer);
    this._timer = null;
    this._isLost = false;
    for (const store of stores()) store.removeItem(NAME);
  }

  _flush() {
    if (this._timer !== null) this._save();
  }

  _save() {
    clearTimeout(this._timer);
    this._timer = null;
    const state = this._state();
    if (isExample(state)) return this.clear();
    const text = JSON.stringify({ address: location.hash, state });
    const kept = text.length > LARGEST ? [] : stores().filter((store) => isKept(store, text));
    if (kept.length === 0) for (const store of stores()) store.removeItem(NAME);
    this._isLost = kept.length === 0;
    return undefined;
  }
}

/** Whether these are the texts of the example, and so nothing that was typed. */
export function isExample(state) {
  return ["site", "robots", "other", "urls", "agents"].every((name) => state[name] === EXAMPLE[name]);
}

function isKept(store, text) {
  try {
    store.setItem(NAME, text);
    return true;
  } catch {
    return false; // it is full
  }
}

/** The storage of this tab and of this browser, as far as the user permits them. */
function stores() {
  return ["sessionStorage", "localStorage"].flatMap((name) => {
    try {
      return [window[name]];
    } catch {
      return [];
    }
  });
}
