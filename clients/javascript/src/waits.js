import { because } from './errors.js';
import { originOf } from './question.js';

const DECIDED = new Set(['allow', 'disallow']);
/** Origins whose last state is remembered. */
const ORIGINS = 65_536;

/** Says why calls wait: one line for each origin, and for the service, when that changes. */
export class Waits {
  #service;
  #log;
  #opens;
  /** By origin, and for the service by its URL: why its calls wait. */
  #states = new Map();
  #waiting = new Map();

  /** `opens`: pages are fetched while the service is silent, and `open` says so. */
  constructor(service, log, opens) {
    this.#service = service;
    this.#log = log;
    this.#opens = opens;
  }

  /** What the service answered about a page. */
  heard(url, answer) {
    if (this.#states.size === 0 && (answer.kind === 'verdict' || answer.kind === 'granted')) return;
    const origin = originOf(url);
    if (answer.kind === 'none') {
      if (answer.set === undefined && !this.#opens) this.#change(this.#service, 'silent', `${this.#service} ${answer.sentence}`);
      return;
    }
    if (answer.reason === 'busy') {
      this.#change(this.#service, `busy ${answer.status}`, because(this.#service, answer));
      return;
    }
    this.#ended(this.#service, 'answers again');
    if (answer.kind !== 'later' && !(answer.kind === 'verdict' && !DECIDED.has(answer.verdict.verdict))) {
      this.#ended(origin, 'is no longer deferred');
    } else if (answer.kind === 'later' && answer.reason !== 'pace') {
      const until = new Date(Date.now() + answer.seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z');
      this.#change(origin, answer.reason, `${origin} is deferred until ${until}: ${because(this.#service, answer)}`);
    }
  }

  /** A page is fetched without a permit. */
  open(answer) {
    const text = `${this.#service} ${answer.sentence} Until it answers, pages are fetched without a permit, at the pace of their sites.`;
    this.#change(this.#service, 'open', text, 'warn');
  }

  /** Count a call that sleeps because of this answer, until the returned function is called. */
  count(url, answer) {
    const key = answer.kind === 'none' || answer.reason === 'busy' ? this.#service : originOf(url);
    this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + 1);
    return () => {
      const left = this.#waiting.get(key) - 1;
      if (left) this.#waiting.set(key, left);
      else this.#waiting.delete(key);
    };
  }

  #ended(key, text) {
    if (this.#states.delete(key)) this.#log.info(`robots-decisions: ${key} ${text}`);
  }

  #change(key, state, text, level = 'info') {
    const before = this.#states.get(key);
    this.#states.delete(key);
    this.#states.set(key, state);
    if (this.#states.size > ORIGINS) this.#states.delete(this.#states.keys().next().value);
    if (before === state) return;
    const waiting = (this.#waiting.get(key) ?? 0) + 1;
    this.#log[level](`robots-decisions: ${text}${waiting > 1 ? ` (${waiting} requests wait)` : ''}`);
  }
}
