import { originOf } from './question.js';

/** Requests of one origin that ask together while its interval is not known. */
const AT_ONCE = 100;
/** Seconds ahead for which as many requests ask as have a slot. */
const LOOKAHEAD = 1;
/** Seconds between two attempts to reach a silent service: they double from the first to the last. */
const [FIRST_RETRY_DELAY, LAST_RETRY_DELAY] = [0.5, 30];
/** Seconds after which a held request goes back to crawlee's queue, or half of those for which the queue locks it. */
const HOLD = 30;
/** Requests that are held: beyond these, crawlee reads none from its queue. */
const MOST_HELD = 1000;
/** Origins whose intervals are remembered: beyond these, those for which nobody waits are forgotten. */
const MOST_LINES = 10_000;
/** Seconds after which a called request that has not come is written off: another process may have it. */
const CALL_TIMEOUT = 60;

const monotonic = () => performance.now() / 1000;

/** The name under which a request has the URL that it was redirected to and goes on at, in its user data. */
export const WAITS_FOR = 'robotsWaitsFor';

/** Who waits for one origin, and until when. */
class Line {
  interval = 0;
  /** How many ask at least: two, if both slots are within `maxWait`, since crawlee's queue takes its time to give out the second. */
  least = 1;
  opensAt = 0;
  /** The turn for which that was set. */
  turn = 0;
  asking = 0;
  delay = FIRST_RETRY_DELAY;
  /** Since when its verdict is deferred, if it is; and until when its requests fail for that, with the last answer. */
  deferredSince = null;
  givenUpUntil = 0;
  refusal = null;
  waiting = [];
  /** By id, when a request was given back to crawlee's queue so that it asks. */
  called = new Map();
  timer = null;

  free(now) {
    if (now < this.opensAt) return 0;
    for (const [id, at] of this.called) if (now - at > CALL_TIMEOUT) this.called.delete(id);
    const places = this.interval * AT_ONCE > LOOKAHEAD ? Math.max(this.least, Math.floor(LOOKAHEAD / this.interval)) : AT_ONCE;
    return places - this.asking - this.called.size;
  }

  /** Whether nobody waits, and the origin may be asked. */
  isIdle(now) {
    return now >= this.opensAt && !this.waiting.length && !this.asking && !this.called.size;
  }
}

/** Holds back the requests of crawlee's queue that wait for their origins, so that they keep no place in the crawler. */
export class Lines {
  #lines = new Map();
  /** By request that goes back: the line to be held in, or null. */
  #putBack = new WeakMap();
  /** Crawlers and their queues. */
  #watched = new WeakSet();
  #held = 0;
  #giveUpAfter;

  /** `giveUpAfter`: seconds that an origin may stay deferred. */
  constructor(giveUpAfter) {
    this.#giveUpAfter = giveUpAfter;
  }

  /** The origin's line. */
  of(url) {
    const origin = originOf(url);
    let line = this.#lines.get(origin);
    if (!line) {
      if (this.#lines.size >= MOST_LINES) this.#forgetIdle();
      this.#lines.set(origin, (line = new Line()));
    }
    return line;
  }

  /** Hold the requests of this crawler that are put back. */
  watch(crawler) {
    if (!crawler) return;
    const manager = crawler.requestManager ?? crawler.requestQueue;
    if (this.#isNew(manager)) {
      const isEmpty = manager.isEmpty.bind(manager);
      manager.isEmpty = async () => this.#held >= MOST_HELD || isEmpty();
    }
    if (this.#isNew(crawler)) {
      // Crawlee has no other way to put a request back without a warning, a failure in its statistics and a retry that counts.
      const fails = crawler._requestFunctionErrorHandler.bind(crawler);
      crawler._requestFunctionErrorHandler = async (error, context, source) => {
        const line = this.#putBack.get(context.request);
        if (line === undefined) return fails(error, context, source);
        this.#putBack.delete(context.request);
        return line === null ? source.reclaimRequest(context.request) : this.#hold(source, context.request, line);
      };
    }
  }

  /** Whether a request may ask for a permit now; then it has a place in the line until `answered`. */
  enter(request, line) {
    const [now, called] = [monotonic(), line.called.delete(request.id)];
    if (now >= line.givenUpUntil && ((!called && line.waiting.length > 0) || line.free(now) < 1)) return false;
    line.asking += 1;
    return true;
  }

  /** A request has its answer, so others may ask. */
  answered(line) {
    line.asking -= 1;
    this.call(line);
  }

  /** The slot of a page was granted. */
  granted(line, interval, maxWait) {
    line.interval = interval;
    line.least = 2 * interval <= maxWait ? 2 : 1;
    line.opensAt = Math.max(line.opensAt, monotonic() + interval - maxWait);
    this.known(line);
  }

  /** The service gave a verdict. */
  known(line) {
    [line.deferredSince, line.delay] = [null, FIRST_RETRY_DELAY];
  }

  /** The verdict is deferred for so many seconds, says this error; with it, its requests fail if that is for too long. */
  deferred(line, error) {
    const now = monotonic();
    line.deferredSince ??= now;
    [line.opensAt, line.delay] = [now + error.seconds, FIRST_RETRY_DELAY];
    if (line.opensAt - line.deferredSince > this.#giveUpAfter) {
      [line.givenUpUntil, line.refusal, line.deferredSince] = [line.opensAt, error, null];
    }
  }

  /** The error with which the requests of an origin fail now, if it stays deferred for too long. */
  givenUp(line) {
    return monotonic() < line.givenUpUntil ? line.refusal : null;
  }

  /** A request has no slot, but a turn in so many seconds. Of several that asked together, the first turn counts. */
  turn(line, seconds) {
    const now = monotonic();
    [line.deferredSince, line.delay] = [null, FIRST_RETRY_DELAY];
    if (now < line.turn && line.turn === line.opensAt && line.turn < now + seconds) return;
    line.opensAt = line.turn = now + seconds;
  }

  /** Nobody asks for so many seconds; without them, the service is silent. */
  close(line, seconds) {
    const now = monotonic();
    line.deferredSince = null; // this is not about the origin
    if (seconds !== undefined) {
      [line.opensAt, line.delay] = [now + seconds, FIRST_RETRY_DELAY];
    } else if (now >= line.opensAt) {
      // Of several that asked together, the first to fail counts.
      [line.opensAt, line.delay] = [now + line.delay, Math.min(line.delay * 2, LAST_RETRY_DELAY)];
    }
  }

  /** Put this request back, to be held in a line; without one, to be read at once. It goes on at this URL. */
  putBack({ request }, line, url) {
    if (url === undefined || url === request.url) delete request.userData[WAITS_FOR];
    else request.userData[WAITS_FOR] = url;
    this.#putBack.set(request, line);
  }

  /** Give all that is held back to crawlee's queue. */
  async giveBack() {
    for (const line of this.#lines.values()) {
      clearTimeout(line.timer);
      await Promise.all(line.waiting.splice(0).map((held) => this.#back(line, held)));
    }
  }

  /** Call as many requests as may ask, and come back for the others. */
  call(line) {
    clearTimeout(line.timer);
    const now = monotonic();
    const free = () => line.free(now) > 0 || now < line.givenUpUntil;
    while (line.waiting.length && (free() || now >= line.waiting[0].until)) {
      const held = line.waiting.shift();
      if (free()) line.called.set(held.request.id, now);
      void this.#back(line, held);
    }
    if (line.waiting.length) {
      const next = Math.min(line.waiting[0].until, line.opensAt > now ? line.opensAt : Infinity);
      line.timer = setTimeout(() => this.call(line), Math.ceil((next - now) * 1000) + 1);
      line.timer.unref();
    }
  }

  #isNew(watched) {
    if (!watched || this.#watched.has(watched)) return false;
    this.#watched.add(watched);
    return true;
  }

  #hold(manager, request, line) {
    const seconds = Math.min(HOLD, (manager.requestLockSecs ?? Infinity) / 2);
    const back = () => manager.reclaimRequest(request, { forefront: true });
    this.#held += 1;
    line.waiting.push({ request, seconds, back, until: monotonic() + seconds });
    this.call(line);
  }

  #forgetIdle() {
    const now = monotonic();
    for (const [origin, line] of this.#lines) if (line.isIdle(now)) this.#lines.delete(origin);
  }

  /** Give a request back to crawlee's queue; if its storage fails, hold it for a while. */
  async #back(line, held) {
    try {
      await held.back();
      this.#held -= 1;
    } catch {
      line.called.delete(held.request.id);
      this.close(line); // or the next attempt would be at once
      line.waiting.push({ ...held, until: monotonic() + held.seconds });
      this.call(line);
    }
  }
}
