/** What answers of the service mean. They are not trusted. */

import { answeredAgent } from './question.js';
import { signedOf } from './signatures.js';

/** Bytes of the longest answer that is read, and characters of a line of a batch. */
export const ANSWER_LIMIT = 4 * 1024 * 1024;

const MAX_PERMIT_WAIT = 3600;
const [MIN_DELAY, MAX_DELAY, MIN_DEFER] = [0.05, 86_400, 1];
/** Seconds until the next request after a 429 that names no time. */
const QUOTA_DELAY = 30;
const SET_KEY = 'Set `key` to an API key of the service.';
const SET_URL = 'Set the URL of a robots.txt decision service, without a path such as /v1.';
const INVALID_QUESTION = new Set([400, 413, 422]);
/** The problem of an `asOf` at which no version was stored. */
const NO_VERSION = 'urn:robots-decisions:problem:no-version';
/** The problem of a key that may not sign, whose sentence says what to do. */
const MAY_NOT_SIGN = 'urn:robots-decisions:problem:may-not-sign';
const PERMIT = /^[A-Za-z0-9_=-]{1,2048}(?:\.[A-Za-z0-9_=-]{1,64})?$/;
const REASON = /^[a-z_]{1,40}$/;
const VERSION = /^[!-~]{1,128}$/;
const SECONDS = /^[0-9]{1,6}$/;
const OFFSET = /(?:Z|[+-]\d\d:\d\d)$/;

/** A service that does not answer; `sentence` goes on after its URL. */
export const silent = (sentence) => ({ kind: 'none', sentence });

/** An answer that no robots.txt decision service gives. */
export const notOurs = (what) => ({ kind: 'none', sentence: `answers with ${what}.`, set: SET_URL });

/** Without HTTP, without TLS, or with a certificate that is not trusted, something else answers. */
export const notHttp = (why) => ({ kind: 'none', sentence: `does not answer in HTTP with a trusted certificate: ${why}.`, set: SET_URL });

/** What a response to a question of a permit means. `headers` has get(); `now` is in Unix seconds. */
export function parseAnswer({ status, headers, body }, now) {
  const message = parsed(body);
  const failure = parseFailure(status, headers, message);
  if (failure) return failure;
  const wrong = notVerdict(message);
  if (wrong) return notOurs(wrong);
  if (message.verdict === 'allow') return granted(message);
  const said = { reason: reasonOf(message), sentence: summaryOf(message) };
  if (message.verdict === 'disallow') return { kind: 'denied', ...said, ...ruleOf(message) };
  const seconds = secondsUntil(message.retry_at, headers.get('date'), now);
  return seconds === null ? notOurs('a defer without retry_at') : { kind: 'later', ...said, seconds };
}

/** What a response to a question of a verdict means. */
export function parseVerdict(url, agent, { status, headers, body }) {
  const message = parsed(body);
  return parseFailure(status, headers, message) ?? verdictOf(url, agent, message);
}

/** What a line of the answer to a batch means; a verdict may be {url, agent, allowed, status, why, retryAfter}. */
export function parseItem(url, agent, line) {
  const message = parsed(line);
  if (!isObject(message) || !isObject(message.problem)) return verdictOf(url, agent, message);
  const { status, detail, retry_after: retryAfter } = message.problem;
  const why = text(detail ?? 'the service does not say why');
  const asked = { url, agent: answeredAgent(agent, message), allowed: false };
  return { kind: 'verdict', verdict: { ...asked, status: number(status) ?? 0, why, retryAfter: number(retryAfter) } };
}

/** Why a response to a batch has no lines, or null. */
export const parseRefusal = ({ status, headers, body }) => parseFailure(status, headers, parsed(body));

function parseFailure(status, headers, message) {
  if (status === 200) return null;
  const problem = isObject(message) && typeof message.detail === 'string';
  const detail = problem ? `: ${sentence(message.detail)}` : '.';
  const said = `answers ${status}${detail}`;
  const retryAfter = SECONDS.test(headers.get('retry-after') ?? '') ? bounded(Number(headers.get('retry-after'))) : null;
  if (status === 429 || (status === 503 && retryAfter !== null)) {
    return { kind: 'later', status, seconds: retryAfter ?? QUOTA_DELAY, reason: 'busy', sentence: said };
  }
  if (problem && (INVALID_QUESTION.has(status) || message.type === NO_VERSION)) return { kind: 'invalid', sentence: `${status}${detail}` };
  if (status >= 500) return silent(said);
  if (message?.type === MAY_NOT_SIGN) return { kind: 'none', sentence: said, set: '' };
  return { kind: 'none', sentence: said, set: status === 401 || status === 403 ? SET_KEY : SET_URL };
}

function granted(message) {
  const [wait, interval] = [number(message.wait), number(message.interval) ?? 0];
  if (typeof message.permit === 'string' && wait !== null) {
    if (!PERMIT.test(message.permit)) return notOurs(`the permit ${shown(message.permit)}`);
    if (wait > MAX_PERMIT_WAIT) return notOurs(`a slot in ${wait} s`);
    const { permit, edge } = message;
    const [version, signed] = [versionOf(message), signedOf(message)];
    return { kind: 'granted', permit, wait, interval: Math.min(interval, MAX_DELAY), refused: isObject(edge), version, signed };
  }
  const retryAfter = number(message.retry_after);
  if (message.permit === null && retryAfter !== null) {
    return { kind: 'later', seconds: bounded(retryAfter), reason: 'pace', sentence: 'the slots of the site are taken until then.' };
  }
  return notOurs('an allow without a slot or retry_after');
}

function verdictOf(url, agent, message) {
  const wrong = notVerdict(message);
  if (wrong) return notOurs(wrong);
  const verdict = {
    url,
    agent: answeredAgent(agent, message),
    verdict: message.verdict,
    allowed: message.allowed,
    reason: reasonOf(message),
    ...ruleOf(message),
    summary: summaryOf(message),
    interval: isObject(message.rate) ? number(message.rate.interval) : null,
    retryAt: typeof message.retry_at === 'string' ? dateOf(message.retry_at) : null,
    version: versionOf(message),
    members: message,
  };
  return { kind: 'verdict', verdict };
}

/** Why a message has no verdict, or null. */
function notVerdict(message) {
  if (!isObject(message)) return 'what is not a JSON object';
  const { verdict, allowed } = message;
  if (['allow', 'disallow', 'defer'].includes(verdict) && allowed === (verdict === 'allow')) return null;
  return `the verdict ${shown(verdict)}, and ${shown(allowed)} for allowed`;
}

/** The service's own sentence, or what is known without it. */
function summaryOf(message) {
  const summary = isObject(message.explanation) ? message.explanation.summary : null;
  if (typeof summary === 'string' && summary) return sentence(summary);
  const { rule, line } = ruleOf(message);
  return rule === null ? `${reasonOf(message)}.` : `line ${line} of robots.txt: ${rule}.`;
}

function secondsUntil(instant, date, now) {
  const at = typeof instant === 'string' && instant.length <= 64 && OFFSET.test(instant) ? Date.parse(instant) : NaN;
  if (Number.isNaN(at)) return null;
  const theirs = date && date.length <= 64 ? Date.parse(date) : NaN;
  return Math.max(MIN_DEFER, bounded(at / 1000 - (Number.isNaN(theirs) ? now : theirs / 1000)));
}

function dateOf(instant) {
  const at = new Date(instant);
  return Number.isNaN(at.getTime()) ? null : at;
}

function ruleOf({ rule }) {
  if (!isObject(rule)) return { rule: null, line: null };
  return { rule: `${text(rule.directive)}: ${text(rule.pattern)}`, line: Number.isInteger(rule.line) ? rule.line : null };
}

const bounded = (seconds) => Math.min(Math.max(seconds, MIN_DELAY), MAX_DELAY);
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const number = (value) => (typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null);
const reasonOf = ({ reason }) => (typeof reason === 'string' && REASON.test(reason) ? reason : 'unknown');
const versionOf = ({ version }) => (typeof version === 'string' && VERSION.test(version) ? version : null);
/** Untrusted text for a log: bounded, on one line. */
const text = (value) => String(value).slice(0, 300).replace(/[^\x20-\x7e\u00a0-\ud7ff\ue000-\uffff]/g, '?');
const sentence = (said) => text(said).trim().replace(/[^.!?]$/, '$&.');
const shown = (value) => (typeof value === 'object' ? typeof value : text(JSON.stringify(value)));

function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
