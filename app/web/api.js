// The routes of the service that this page uses. URLs are relative, so the page works below any prefix.

import { KeyField } from "./key.js";
import { duration } from "./labels.js";

const keys = new KeyField(document.getElementById("keyed"), document.getElementById("forget"));

/** A failed request; `parameter` names the value at fault, if any. */
export class ServiceError extends Error {
  constructor(detail, parameter = null) {
    super(detail);
    this.parameter = parameter;
  }
}

/** `POST v1/test`, explained, with the references of each row resolved; throws ServiceError. */
export async function judge(question, signal) {
  const body = JSON.stringify({ ...question, explain: true });
  const answer = await ask("v1/test", { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
  if (answer.left_out > 0) throw new ServiceError("The question is too large: name fewer pages or crawlers.");
  return { ...answer, rows: answer.rows.map((row) => whole(row, answer)) };
}

/** A row with its rule, group, reader and usage in place of their indexes. */
function whole(row, { readers, groups, rules, usages }) {
  const { rate, crawl_delay, visit, tokens, found, schedule } = readers[row.reader];
  const matched = row.explanation.rules.map(({ rule, length }) => ({ ...rules[rule], length }));
  return {
    ...row,
    rule: rules[row.rule] ?? null,
    group: groups[row.group] ?? null,
    usage: usages[row.usage] ?? null,
    rate,
    crawl_delay,
    visit,
    explanation: { ...row.explanation, rules: matched, tokens, group: found, schedule },
  };
}

/** `GET v1/robots`: the cached file of the origin of `url`; throws ServiceError. */
export function held(url, signal) {
  return ask(`v1/robots?${new URLSearchParams({ url })}`, { signal });
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

/** The JSON of a response. A request that needs an API key waits until the user enters one. */
async function ask(path, init) {
  for (;;) {
    const used = keys.key;
    const response = await send(path, init, used);
    const answer = await json(response);
    const detail = answer?.detail ?? refusal(response);
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
  try {
    return await fetch(path, { ...init, headers, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("The service did not respond.");
  }
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
