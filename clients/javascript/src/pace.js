import { siteOf } from './question.js';

/** Seconds between two pages of a site for which no interval is known. */
const MIN_INTERVAL = 1;
const MAX_INTERVAL = 86_400;
/** Sites that are remembered: those that were used last. */
const SITES = 65_536;

/** The pace that a client keeps by itself while the service is silent: at least a second, or the last known interval. */
export class LocalPace {
  #sites = new Map();

  /** Note the interval of a slot that the service granted, and when it began. */
  learn(url, interval, begun) {
    const site = this.#site(url);
    site.interval = Math.min(Math.max(interval, MIN_INTERVAL), MAX_INTERVAL);
    site.free = Math.max(site.free, begun + site.interval);
  }

  /** Seconds until the next slot, and its interval. It is taken if it begins within so many seconds. */
  take(url, now, within) {
    const site = this.#site(url);
    const at = Math.max(site.free, now);
    const { interval } = site;
    if (at - now > within) return { wait: at - now, interval, giveBack: null };
    site.free = at + interval;
    const giveBack = () => {
      if (site.free === at + interval) site.free = at; // unless another has been given after it
    };
    return { wait: at - now, interval, giveBack };
  }

  #site(url) {
    const name = siteOf(url);
    const site = this.#sites.get(name) ?? { interval: MIN_INTERVAL, free: 0 };
    this.#sites.delete(name);
    this.#sites.set(name, site);
    if (this.#sites.size > SITES) this.#sites.delete(this.#sites.keys().next().value);
    return site;
  }
}
