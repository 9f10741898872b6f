/** Outcomes that one request has at most. */
const OUTCOMES = 1000;
/** Milliseconds that an outcome waits for others; and that all wait after a failure. */
const [DELAY, PAUSE] = [1000, 60_000];

/** Outcomes that need not be known at once: they are sent together. `send` takes the message and says whether it arrived. */
export class Outcomes {
  #send;
  #items = [];
  #timer = null;
  #delay = DELAY;

  constructor(send) {
    this.#send = send;
  }

  /** Add one. Beyond OUTCOMES it is dropped. */
  add(item) {
    if (this.#items.length < OUTCOMES) this.#items.push(item);
    this.#timer ??= setTimeout(() => this.flush(), this.#delay).unref(); // a process does not stay for it
  }

  /** Send what waits. */
  async flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    const items = this.#items.splice(0);
    if (items.length) this.#delay = (await this.#send({ items })) ? DELAY : PAUSE;
  }
}
