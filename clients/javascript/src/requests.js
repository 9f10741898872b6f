/** What is sent to the service. */

import { withoutCredentials } from './question.js';

/** Seconds that the service may take to fetch a robots.txt that is not cached. */
const FETCH_WAIT = 10;
/** Most seconds for an answer, and for each line of a batch; and least, however little a call may wait. */
const [ANSWER_TIMEOUT, MIN_ANSWER_TIMEOUT] = [15, 1];
/** Seconds for the report of an outcome, which is lost after that. */
export const OUTCOME_TIMEOUT = 5;
/** Questions that one request of a batch has. */
export const BATCH_ITEMS = 500;

const REPORTED = new Set([401, 402, 403, 429, 451, 503]);

/** Seconds for an answer to a call that may wait for `left` more. */
export const answerTimeout = (left) => Math.min(Math.max(left, MIN_ANSWER_TIMEOUT), ANSWER_TIMEOUT);

/** The members of a question of a verdict; the service has two thirds of the time for a fetch. */
export function question(url, members, left) {
  return { url: withoutCredentials(url), ...members, wait: rounded((answerTimeout(left) * FETCH_WAIT) / ANSWER_TIMEOUT) };
}

/** The members of a question of a permit. */
export function permitQuestion(url, members, left, caller, sign, acceptSignature) {
  const asked = { ...question(url, members, left), max_wait: rounded(left), caller };
  return { ...asked, ...(sign ? { sign } : {}), ...(acceptSignature === undefined ? {} : { accept_signature: acceptSignature }) };
}

/** The members of a question as a query. */
export function query(members) {
  const pairs = Object.entries(members).flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)]));
  return new URLSearchParams(pairs);
}

/** Whether the fleet has to know at once that the page answered with this status. */
export function isUrgent(grant, status) {
  return REPORTED.has(status) || (grant.refused && status >= 200 && status < 300);
}

/** The JSON of an outcome. `price` is what a 402 asks for the page `url`, by its header crawler-price. */
export function outcome(status, retryAfter, elapsed, price = null, url = undefined) {
  const reported = { status, elapsed: rounded(elapsed) };
  const asked = status === 402 && price != null ? price.trim().slice(0, 100) : '';
  if (/^[ -~]+$/.test(asked)) Object.assign(reported, { price: asked, url });
  return retryAfter == null ? reported : { ...reported, retry_after: String(retryAfter).slice(0, 100) };
}

const rounded = (seconds) => Math.round(Math.max(seconds, 0) * 1000) / 1000;
