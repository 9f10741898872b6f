import { originOf } from './question.js';

/** Requests of one origin that ask together while its interval is not known. */
const AT_ONCE = 100;
/** Seconds ahead for which as many requests ask as have a slot, and at least one. */
const LOOKAHEAD = 1;
/** Seconds between two attempts to reach a silent service: they double from the first to the last. */
const [FIRST_RETRY_DELAY, LAST_RETRY_DELAY] = [0.5, 30];
/** Seconds after which a held request goes back to crawlee's queue, whose lock on it ends after 60 or more. */
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
  opensAt = 0;
  asking = 0;
  delay = FIRST_RETRY_DELAY;
  waiting = [];
  /** By id, when a request was given back to crawlee's queue so that it asks. */
  called = new Map();
  timer = null;

  free(now) {
    if (now < this.opensAt) return 0;
    for (const [id, at] of this.called) if (now - at > CALL_TIMEOUT) this.called.delete(id);
    const places = this.interval * AT_ONCE > LOOKAHEAD ? Math.max(1, Math.floor(LOOKAHEAD / this.interval)) : AT_ONCE;
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
  /** By request: the line to be held in, once crawlee gives the request back. */
  #holds = new WeakMap();
  #managers = new WeakSet();
  #held = 0;

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

  /** Hold requests that crawlee gives back to this manager. */
  watch(manager) {
    if (!manager || this.#managers.has(manager)) return;
    this.#managers.add(manager);
    const [reclaim, isEmpty] = [manager.reclaimRequest.bind(manager), manager.isEmpty.bind(manager)];
    manager.isEmpty = async () => this.#held >= MOST_HELD || isEmpty();
    manager.reclaimRequest = async (request, options) => {
      const line = this.#holds.get(request);
      if (!line) return reclaim(request, options);
      this.#holds.delete(request);
      request.errorMessages?.pop(); // it is no failure
      const held = { request, since: monotonic(), back: () => reclaim(request, { forefront: true }) };
      this.#held += 1;
      line.waiting.push(held);
      this.call(line);
      return null;
    };
  }

  /** Whether a request may ask for a permit now; then it has a place in the line until `answered`. */
  enter(request, line) {
    const [now, called] = [monotonic(), line.called.delete(request.id)];
    if ((!called && line.waiting.length > 0) || line.free(now) < 1) return false;
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
    line.opensAt = Math.max(line.opensAt, monotonic() + interval - maxWait);
    line.delay = FIRST_RETRY_DELAY;
  }

  /** Nobody asks for so many seconds; without them, the service is silent. */
  close(line, seconds) {
    const now = monotonic();
    if (seconds !== undefined) {
      [line.opensAt, line.delay] = [now + seconds, FIRST_RETRY_DELAY];
    } else if (now >= line.opensAt) {
      // Of several that asked together, the first to fail counts.
      [line.opensAt, line.delay] = [now + line.delay, Math.min(line.delay * 2, LAST_RETRY_DELAY)];
    }
  }

  /** Let crawlee give this request back without a retry that counts, to be held in a line; without one, to be read at once. */
  putBack({ request }, line, url) {
    request.retryCount -= 1; // crawlee adds one
    if (url === undefined || url === request.url) delete request.userData[WAITS_FOR];
    else request.userData[WAITS_FOR] = url;
    if (line) this.#holds.set(request, line);
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
    while (line.waiting.length && (line.free(now) > 0 || now - line.waiting[0].since >= HOLD)) {
      const held = line.waiting.shift();
      if (line.free(now) > 0) line.called.set(held.request.id, now);
      void this.#back(line, held);
    }
    if (line.waiting.length) {
      const next = Math.min(line.waiting[0].since + HOLD, line.opensAt > now ? line.opensAt : Infinity);
      line.timer = setTimeout(() => this.call(line), Math.ceil((next - now) * 1000) + 1);
      line.timer.unref();
    }
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
      line.waiting.push({ ...held, since: monotonic() });
      this.call(line);
    }
  }
}
