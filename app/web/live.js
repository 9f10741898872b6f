// Tests as the user types: once there is a pause, which is longer where answers take longer. Who pastes a whole file has
// no more to type, and does not wait.

const SHORTEST = 300;
const LONGEST = 4000;

export class Live {
  /** `ask()` puts the question; it resolves to true if it was answered. */
  constructor(ask) {
    this._ask = ask;
    this._timer = null;
    this._took = 0;
    this._stopped = false;
  }

  /** Ask once there is a pause, or `atOnce`; false after a failure, until `resume()`. */
  changed(atOnce) {
    this.cancel();
    if (this._stopped) return false;
    this._timer = setTimeout(() => this._run(), atOnce ? 0 : Math.min(Math.max(SHORTEST, 2 * this._took), LONGEST));
    return true;
  }

  /** Ask no more about the changes so far. */
  cancel() {
    clearTimeout(this._timer);
  }

  /** A test has been answered: go on after a failure. */
  resume() {
    this._stopped = false;
  }

  async _run() {
    const begun = performance.now();
    this._stopped = !(await this._ask());
    this._took = performance.now() - begun;
  }
}
