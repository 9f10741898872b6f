/** When to ask, to wait and to ask again, without I/O. */

import { notOurs } from './answers.js';

const MAX_PERMIT_WAIT = 3600;
/** Seconds by which a slot may always be missed: timers are not exact. */
const GRACE = 0.1;
const [FIRST_RETRY_DELAY, LAST_RETRY_DELAY] = [0.5, 30];

/** How long calls wait: at most `maxWait` seconds, also for a service that is silent if `retry`. */
export class Patience {
  #ends;
  #pause = FIRST_RETRY_DELAY;
  #retry;
  #monotonic;

  constructor(maxWait, retry, monotonic) {
    this.#ends = monotonic() + maxWait;
    this.#retry = retry;
    this.#monotonic = monotonic;
  }

  get left() {
    return Math.max(0, this.#ends - this.#monotonic());
  }

  /** Seconds to wait before the service is asked again, or null to give up. */
  after(answer) {
    let seconds = null;
    if (answer.kind === 'later') {
      seconds = answer.seconds;
    } else if (answer.kind === 'none' && answer.set === undefined && this.#retry) {
      [seconds, this.#pause] = [this.#pause, Math.min(this.#pause * 2, LAST_RETRY_DELAY)];
    }
    return seconds !== null && seconds <= this.left ? seconds : null;
  }
}

/**
 * The exchange about one page: yields {ask: left} and wants the answer, or {sleep, holding, because}. Returns a grant when its
 * slot begins, or the answer for which there is none within `maxWait` seconds.
 */
export function* conversation(maxWait, retry, monotonic) {
  const patience = new Patience(maxWait, retry, monotonic);
  for (;;) {
    const { left } = patience;
    const answer = yield { ask: Math.min(left, MAX_PERMIT_WAIT) };
    if (answer.kind === 'granted') {
      if (answer.wait > left + GRACE) return notOurs(`a slot in ${answer.wait} s to a question for at most ${left} s`);
      const due = monotonic() + answer.wait;
      yield { sleep: answer.wait, holding: answer };
      if (monotonic() - due <= Math.max(answer.interval, GRACE)) return answer;
      continue; // nothing to release: the slot is over
    }
    const seconds = patience.after(answer);
    if (seconds === null) return answer;
    yield { sleep: seconds, because: answer };
  }
}
