// The routes of the service that this page asks. URLs are relative, so the page works below any prefix.

import { KeyField } from "./key.js";
import { duration } from "./words.js";

const keys = new KeyField(document.getElementById("keyed"), document.getElementById("forget"));

/** What the service, or the way to it, has against a request; `parameter` says which value of it, where one is at fault. */
export class Trouble extends Error {
  constructor(detail, parameter = null) {
    super(detail);
    this.parameter = parameter;
  }
}

/** `POST v1/test`, explained, each row with what it refers to; raises Trouble. */
export async function judge(question, signal) {
  const body = JSON.stringify({ ...question, explain: true });
  const answer = await ask("v1/test", { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
  if (answer.left_out > 0) throw new Trouble("The question is too large for the service: name fewer pages or crawlers.");
  return { ...answer, rows: answer.rows.map((row) => whole(row, answer)) };
}

/** A row with the rule, the group and the like in place of their numbers. */
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

/** `GET v1/robots`: the file that is held for the origin of `url`; raises Trouble. */
export function held(url, signal) {
  return ask(`v1/robots?${new URLSearchParams({ url })}`, { signal });
}

/** `GET v1/robots/history`: what is known that the file was, the newest first; raises Trouble. */
export async function versions(url, signal) {
  return (await ask(`v1/robots/history?${new URLSearchParams({ url })}`, { signal })).versions;
}

/** One of these, with its text; raises Trouble. */
export async function version(url, id, signal) {
  return (await ask(`v1/robots/history?${new URLSearchParams({ url, version: id })}`, { signal })).versions[0];
}

/** `GET v1/robots/diff`: who gained or lost what from one version to another, each an id or an instant; raises Trouble. */
export function differs(url, from, to, dialect, signal) {
  const query = new URLSearchParams({ url, from, dialect });
  if (to !== null) query.set("to", to);
  return ask(`v1/robots/diff?${query}`, { signal });
}

/** The answer's JSON. A question that needs a key, or another one, waits until somebody gives it. */
async function ask(path, init) {
  for (;;) {
    const used = keys.key;
    const response = await send(path, init, used);
    const answer = await json(response);
    const detail = answer?.detail ?? refusal(response);
    if (response.status === 401 || (response.status === 403 && used !== null)) {
      // Who has given no key yet is not told how programs send one.
      await keys.wanted(used === null ? null : detail, used, init.signal);
      continue;
    }
    keys.taken(used);
    if (response.ok && answer !== null) return answer;
    throw new Trouble(detail, answer?.parameter ?? null);
  }
}

async function send(path, init, key) {
  const headers = key === null ? init.headers : { ...init.headers, Authorization: `Bearer ${key}` };
  try {
    return await fetch(path, { ...init, headers, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble("The service did not answer.");
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

/** What an answer says that has no words of its own: it is from something on the way. */
function refusal(response) {
  const seconds = Number(response.headers.get("Retry-After") ?? "");
  const again = seconds > 0 ? `: ask again in ${duration(seconds)}.` : ".";
  const said = {
    401: "The service wants an API key",
    403: "This is not permitted to you",
    429: "Too much was asked in too short a time",
    503: "The service takes no questions at the moment",
  }[response.status];
  return (said ?? `The service answered ${response.status}`) + again;
}
