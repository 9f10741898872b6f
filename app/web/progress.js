// The progress of a test that takes several requests.

export class Progress {
  /** `cancel()` is called when the user cancels the test. */
  constructor(box, cancel) {
    this._box = box;
    this._bar = box.querySelector("progress");
    this._said = box.querySelector("span");
    box.querySelector("button").addEventListener("click", cancel);
  }

  /** Show that `done` of `all` verdicts are known; nothing of a test that is over with one request. */
  show(done, all) {
    if (this._box.hidden && done >= all) return;
    this._box.hidden = done >= all;
    this._bar.max = all;
    this._bar.value = done;
    this._said.textContent = `${done.toLocaleString("en")} of ${all.toLocaleString("en")} verdicts`;
  }

  hide() {
    this._box.hidden = true;
  }
}
