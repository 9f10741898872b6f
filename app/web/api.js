// The routes of the service that this page uses. URLs are relative, so the page works below any prefix.

import { KeyField } from "./key.js";
import { duration } from "./labels.js";
import { posted, request } from "./request.js";

const keys = new KeyField(document.getElementById("keyed"), document.getElementById("forget"));

/** Seconds to wait for a fetch: longer than a fetch may take, so that its time-out is told at once. */
const FETCH_WAIT = 12;

/** Whether the user has entered an API key. */
export const hasKey = () => keys.key !== null;

/** A failed request; `parameter` names the value at fault, if any. */
export class ServiceError extends Error {
  constructor(detail, parameter = null) {
    super(detail);
    this.parameter = parameter;
  }
}

/**
 * `POST v1/test`: the first rows, or {problem} in place of one that failed; throws ServiceError. There are fewer than was
 * asked for if the work is too much for one request.
 */
export function judge(question, signal) {
  return ask("v1/test", { ...posted(question), signal });
}

/** `POST v1/test` for one row, explained in detail: what a file, {text, truncated}, says; throws ServiceError. */
export async function judgeInDetail({ url, asked, dialect, purposes }, { text, truncated }, signal) {
  const purpose = Object.keys(purposes ?? {});
  const question = { robots: text, truncated, urls: [url], agents: [asked], dialects: [dialect], explain: true };
  const { rows } = await judge(purpose.length > 0 ? { ...question, purpose } : question, signal);
  if (rows[0].problem !== undefined) throw new ServiceError(rows[0].problem.detail);
  return rows[0];
}

/** `POST v1/allowed`: for each {url, agent, dialect, purpose} the answer, or {problem}; throws ServiceError. */
export async function decide(items, signal) {
  return (await ask("v1/allowed", { ...posted({ items, wait: FETCH_WAIT }), signal })).answers;
}

/** `GET v1/allowed`, explained in detail; throws ServiceError. */
export async function decideInDetail({ url, agent, dialect, purposes }, signal) {
  const query = new URLSearchParams({ url, agent, dialect, explain: true, wait: FETCH_WAIT });
  for (const purpose of Object.keys(purposes ?? {})) query.append("purpose", purpose);
  return ask(`v1/allowed?${query}`, { signal });
}

/** `POST v1/indexing`: what a page itself says to a crawler, by a fetch of the service's; throws ServiceError. */
export function pageItself(url, agent, signal) {
  return ask("v1/indexing", { ...posted({ url, agents: [agent], fetch: true, wait: FETCH_WAIT }), signal });
}

/** `GET v1/agents?category=`: the names of the crawlers of a category; throws ServiceError. */
export async function agentsOf(category, signal) {
  return (await ask(`v1/agents?${new URLSearchParams({ category })}`, { signal })).agents.map(({ token }) => token);
}

/** `GET v1/agents`: the category of each known crawler by its name in lower case; throws ServiceError. */
export async function categories(signal) {
  return new Map((await ask("v1/agents", { signal })).agents.map(({ token, category }) => [token.toLowerCase(), category]));
}

/** `GET v1/robots`: the cached file of the origin of `url`; throws ServiceError. */
export function held(url, signal) {
  return ask(`v1/robots?${new URLSearchParams({ url, wait: FETCH_WAIT })}`, { signal });
}

/** `POST v1/robots/sitemaps`: the URLs that the sitemaps of the file list, and what became of each; throws ServiceError. */
export function sitemapUrls(url, signal) {
  return ask(`v1/robots/sitemaps?${new URLSearchParams({ url })}`, { method: "POST", signal });
}

/** `GET v1/robots/history`: the known versions, newest first; throws ServiceError. */
export async function versions(url, signal) {
  return (await ask(`v1/robots/history?${new URLSearchParams({ url })}`, { signal })).versions;
}

/** One version with its text; throws ServiceError. */
export async function version(url, id, signal) {
  return (await ask(`v1/robots/history?${new URLSearchParams({ url, version: id })}`, { signal })).versions[0];
}

/** `GET v1/robots/diff`: what changed from one version to another, each an id or an instant; throws ServiceError. */
export function differs(url, from, to, dialect, signal) {
  const query = new URLSearchParams({ url, from, dialect });
  if (to !== null) query.set("to", to);
  return ask(`v1/robots/diff?${query}`, { signal });
}

/** `POST v1/robots/refresh`: fetch the file of the origin of `url` now, for operators; throws ServiceError. */
export function refresh(url, signal) {
  return ask(`v1/robots/refresh?${new URLSearchParams({ url })}`, { method: "POST", signal });
}

/**
 * `GET v1/origins?order=backoff`: origin -> the instant until which the fleet leaves it alone. Null if the user is not
 * an operator, who alone may know; throws ServiceError.
 */
export async function backoffs(signal) {
  const answer = await ask("v1/origins?order=backoff&limit=1000", { signal }, { refusable: true });
  return answer && new Map(answer.origins.map(({ origin, backoff_until: until }) => [origin, until]));
}

/**
 * The JSON of a response. A request that needs an API key waits until the user enters one; if one without the right to
 * it, or none, is `refusable`, the answer is null.
 */
async function ask(path, init, { refusable = false } = {}) {
  for (;;) {
    const used = keys.key;
    const response = await send(path, init, used);
    const answer = await json(response);
    const detail = answer?.detail ?? refusal(response);
    if (refusable && (response.status === 403 || (response.status === 401 && used === null))) return null;
    if (response.status === 401 || (response.status === 403 && used !== null)) {
      // Without a key yet, do not show the text meant for programs, which says how to send one.
      await keys.wanted(used === null ? null : detail, used, init.signal);
      continue;
    }
    keys.taken(used);
    if (response.ok && answer !== null) return answer;
    throw new ServiceError(detail, answer?.parameter ?? null);
  }
}

async function send(path, init, key) {
  const headers = key === null ? init.headers : { ...init.headers, Authorization: `Bearer ${key}` };
  const first = key === null ? await firstAnswer(init.body) : null;
  if (first !== null) return first;
  try {
    return await request(path, { ...init, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("The service did not respond.");
  }
}

/** The response to the first request of the page if first.js has put the question already, or null. */
async function firstAnswer(question) {
  const { body, response } = globalThis.firstAnswer ?? {};
  globalThis.firstAnswer = null; // a later question is put again, and first.js, if it comes late, puts none
  return body !== undefined && body === question ? response : null;
}

async function json(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return null;
  }
}

/** A message for a response without `detail`, from a proxy for example. */
function refusal(response) {
  const seconds = Number(response.headers.get("Retry-After") ?? "");
  const again = seconds > 0 ? `: try again in ${duration(seconds)}.` : ".";
  const said = {
    401: "The service requires an API key",
    403: "Your API key does not permit this",
    429: "Too many requests",
    503: "The service is not available at the moment",
  }[response.status];
  return (said ?? `The service answered ${response.status}`) + again;
}
