/** The protocol of permits and verdicts, without I/O. Answers of the service are not trusted. */

export const ANSWER_LIMIT = 4 * 1024 * 1024;
/** Seconds that the service may take to fetch a robots.txt that is not cached. */
export const FETCH_WAIT = 10;
/** Milliseconds for an answer, and for the report of an outcome. */
export const ANSWER_TIMEOUT = 15_000;
export const OUTCOME_TIMEOUT = 5_000;
/** Questions that one request of a batch has. */
export const BATCH_ITEMS = 500;

const MAX_PERMIT_WAIT = 3600;
const [MIN_DELAY, MAX_DELAY, MIN_DEFER] = [0.05, 86_400, 1];
/** Seconds by which a slot may always be missed: timers are not exact. */
const GRACE = 0.1;
const [FIRST_RETRY_DELAY, LAST_RETRY_DELAY] = [0.5, 30];
const REPORTED = new Set([401, 402, 403, 429, 451, 503]);
const INVALID_QUESTION = new Set([400, 413, 422]);
const PERMIT = /^[A-Za-z0-9_=-]{1,2048}(?:\.[A-Za-z0-9_=-]{1,64})?$/;
const REASON = /^[a-z_]{1,40}$/;
const KEY = /^[!-~]{1,512}$/;
const CALLER = /^[A-Za-z0-9._@-]{1,64}$/;

/** The URL of the service without a slash at its end. */
export function checkedService(service) {
  const url = URL.canParse(service) ? new URL(service) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash) {
    throw new TypeError(`Invalid service URL ${JSON.stringify(service)}: use http:// or https://, and no query`);
  }
  return url.href.replace(/\/+$/, '');
}

/** The options of a client, with defaults. Throws TypeError for invalid ones. */
export function checkedOptions({ key, agent, caller, maxWait = 60, unreachable = 'fail', fetch = globalThis.fetch } = {}) {
  if (key !== undefined && !KEY.test(key)) throw new TypeError('malformed API key: use printable ASCII without spaces');
  if (caller !== undefined && !CALLER.test(caller)) {
    throw new TypeError(`Invalid caller ${JSON.stringify(caller)}: use 1 to 64 letters, digits, '.', '_', '@' and '-'`);
  }
  if (agent !== undefined && !String(agent).trim()) throw new TypeError('agent is empty');
  if (!['fail', 'wait', 'allow'].includes(unreachable)) {
    throw new TypeError(`unreachable=${JSON.stringify(unreachable)} is not one of 'fail', 'wait' and 'allow'`);
  }
  return { key, agent, caller, maxWait: checkedSeconds(maxWait), unreachable, fetch };
}

export function checkedSeconds(seconds) {
  if (!(Number.isFinite(seconds) && seconds >= 0)) throw new TypeError(`maxWait=${seconds} is not a number of seconds`);
  return seconds;
}

/** The URL without credentials and fragment, which do not influence a verdict. */
export function withoutCredentials(url) {
  const bare = url.split('#', 1)[0];
  const found = /^([^:/?#]*:\/\/)([^/?\\]*)/.exec(bare);
  if (!found) return bare;
  return found[1] + found[2].slice(found[2].lastIndexOf('@') + 1) + bare.slice(found[0].length);
}

/** The JSON to POST to /v1/permits. */
export function question(url, agent, maxWait, caller) {
  return {
    url: withoutCredentials(url),
    agent,
    max_wait: Math.round(Math.min(Math.max(maxWait, 0), MAX_PERMIT_WAIT) * 1000) / 1000,
    wait: FETCH_WAIT,
    ...(caller === undefined ? {} : { caller }),
  };
}

/** Whether the service should be told that the page answered with this status. */
export function toReport(grant, status) {
  return REPORTED.has(status) || (grant.refused && status >= 200 && status < 300);
}

/** The JSON of an outcome. */
export function outcome(status, retryAfter, elapsed) {
  const reported = { status, elapsed: Math.round(Math.max(elapsed, 0) * 1000) / 1000 };
  return retryAfter == null ? reported : { ...reported, retry_after: String(retryAfter).slice(0, 100) };
}

/** What a response to a question of a permit means. `headers` has get(); `now` is in Unix seconds. */
export function parseAnswer(status, headers, body, now) {
  const message = parsed(body);
  const failure = parseFailure(status, headers, message);
  if (failure) return failure;
  if (!isObject(message)) return { kind: 'none', why: 'its answer is not a JSON object' };
  if (message.verdict === 'allow' && message.allowed === true) return granted(message);
  if (message.verdict === 'disallow') return { kind: 'denied', reason: reasonOf(message), ...ruleOf(message) };
  if (message.verdict === 'defer') {
    const until = secondsUntil(message.retry_at, headers.get('date'), now);
    if (until === null) return { kind: 'none', why: 'it defers without retry_at' };
    return { kind: 'later', seconds: until, reason: reasonOf(message) };
  }
  return { kind: 'none', why: `its verdict is ${shown(message.verdict)}` };
}

/** What a response to a question of a verdict means. */
export function parseVerdict(url, agent, status, headers, body) {
  const message = parsed(body);
  const failure = parseFailure(status, headers, message);
  if (failure) return failure;
  const verdict = verdictOf(url, agent, message);
  return typeof verdict === 'string' ? { kind: 'none', why: verdict } : { kind: 'verdict', verdict };
}

/** A line of the answer to a batch: a verdict, or {url, agent, status, why}. Throws Error if it is neither. */
export function parseItem(url, agent, line) {
  const message = parsed(line);
  if (isObject(message) && isObject(message.problem)) {
    const { status, detail } = message.problem;
    return { url, agent, allowed: false, status: number(status) ?? 0, why: text(detail ?? 'it does not say why') };
  }
  const verdict = verdictOf(url, agent, message);
  if (typeof verdict === 'string') throw new Error(verdict);
  return verdict;
}

/**
 * The exchange about one page: yields {ask: maxWait} and wants the answer, or {sleep, holding}. Returns a grant when its
 * slot begins, or the answer for which there is none within `maxWait` seconds.
 */
export function* conversation(maxWait, retry, monotonic) {
  const ends = monotonic() + maxWait;
  let pause = FIRST_RETRY_DELAY;
  for (;;) {
    const left = Math.max(0, ends - monotonic());
    const answer = yield { ask: Math.min(left, MAX_PERMIT_WAIT) };
    let seconds;
    if (answer.kind === 'granted') {
      if (answer.wait > left + GRACE) {
        return { kind: 'none', why: `it granted a slot in ${answer.wait} s, but at most ${left} s were requested` };
      }
      const due = monotonic() + answer.wait;
      yield { sleep: answer.wait, holding: answer };
      if (monotonic() - due <= Math.max(answer.interval, GRACE)) return answer;
      continue; // nothing to release: the slot is over
    } else if (answer.kind === 'later') {
      seconds = answer.seconds;
    } else if (answer.kind === 'none' && retry) {
      [seconds, pause] = [pause, Math.min(pause * 2, LAST_RETRY_DELAY)];
    } else {
      return answer;
    }
    if (seconds > Math.max(0, ends - monotonic())) return answer;
    yield { sleep: seconds };
  }
}

function parseFailure(status, headers, message) {
  const retryAfter = headers.get('retry-after') ?? '';
  if ((status === 429 || status === 503) && /^[0-9]{1,6}$/.test(retryAfter)) {
    return { kind: 'later', seconds: bounded(Number(retryAfter)), reason: 'busy' };
  }
  if (status === 200) return null;
  const detail = isObject(message) && typeof message.detail === 'string' ? `: ${text(message.detail)}` : '';
  return { kind: INVALID_QUESTION.has(status) ? 'invalid' : 'none', why: `it answers ${status}${detail}` };
}

function granted(message) {
  const [wait, interval] = [number(message.wait), number(message.interval) ?? 0];
  if (typeof message.permit === 'string' && wait !== null) {
    if (!PERMIT.test(message.permit)) return { kind: 'none', why: `its permit is ${shown(message.permit)}` };
    if (wait > MAX_PERMIT_WAIT) return { kind: 'none', why: `its wait is ${wait} s` };
    const { permit, degraded } = message;
    return { kind: 'granted', permit, wait, interval, degraded: degraded === true, refused: isObject(message.edge) };
  }
  const retryAfter = number(message.retry_after);
  if (message.permit === null && retryAfter !== null) return { kind: 'later', seconds: bounded(retryAfter), reason: 'pace' };
  return { kind: 'none', why: 'it allows the page without a slot or retry_after' };
}

function verdictOf(url, agent, message) {
  if (!isObject(message)) return 'its answer is not a JSON object';
  const { verdict, allowed } = message;
  if (!['allow', 'disallow', 'defer'].includes(verdict) || allowed !== (verdict === 'allow')) {
    return `its verdict is ${shown(verdict)}, and allowed is ${shown(allowed)}`;
  }
  const at = typeof message.retry_at === 'string' ? new Date(message.retry_at) : null;
  const retryAt = at && !Number.isNaN(at.getTime()) ? at : null;
  const interval = isObject(message.rate) ? number(message.rate.interval) : null;
  return { url, agent, verdict, allowed, reason: reasonOf(message), ...ruleOf(message), interval, retryAt, members: message };
}

function secondsUntil(instant, date, now) {
  const at = typeof instant === 'string' && instant.length <= 64 ? Date.parse(instant) : NaN;
  if (Number.isNaN(at) || !/(?:Z|[+-]\d\d:\d\d)$/.test(instant)) return null;
  const theirs = date && date.length <= 64 ? Date.parse(date) : NaN;
  return Math.max(MIN_DEFER, bounded(at / 1000 - (Number.isNaN(theirs) ? now : theirs / 1000)));
}

function ruleOf({ rule }) {
  if (!isObject(rule)) return { rule: null, line: null };
  return { rule: `${text(rule.directive)}: ${text(rule.pattern)}`, line: Number.isInteger(rule.line) ? rule.line : null };
}

const bounded = (seconds) => Math.min(Math.max(seconds, MIN_DELAY), MAX_DELAY);
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const number = (value) => (typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null);
const reasonOf = ({ reason }) => (typeof reason === 'string' && REASON.test(reason) ? reason : 'unknown');
/** Untrusted text for a log: bounded, on one line. */
const text = (value) => String(value).slice(0, 300).replace(/[^\x20-\x7e\u00a0-\ud7ff\ue000-\uffff]/g, '?');
const shown = (value) => (typeof value === 'object' ? typeof value : text(JSON.stringify(value)));

function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
