// What the service knows beside the file: overrides, the fetch and its age, when to try again, back-off.

import { ago, causeOf, instant, pace, until } from "./labels.js";
import { count, el, quoted } from "./text.js";

const ACTIONS = {
  allow: "allows everything in its scope",
  deny: "blocks everything in its scope",
  robots: "puts another text in place of robots.txt",
  delay: "sets the crawl rate",
};

/**
 * The facts behind `row`, an answer of `GET v1/allowed`, as elements. `backoff` is the instant until which the fleet
 * leaves the origin alone, null for none; `again` is the button that fetches the file again, or null.
 */
export function serviceFacts(row, backoff, again) {
  if (row.robots === undefined) return [];
  const facts = [
    ["Try again", row.retry_at && `${until(row.retry_at)} (${instant(row.retry_at)})`],
    ["Override", row.override && overrideOf(row.override)],
    ["robots.txt", [...copyOf(row.robots), again && " ", again]],
    ["Last fetch", lastFetch(row.robots)],
    ["Next check", row.robots.recheck_at && `${until(row.robots.recheck_at)} (${instant(row.robots.recheck_at)})`],
    ["Crawl rate now", rateOf(row)],
    ["Pages", row.edge && edgeOf(row.edge)],
    ["Back-off", backoff && `The fleet leaves this site alone until ${instant(backoff)}: its pages answered 429 or 503.`],
  ];
  const shown = facts.filter(([, fact]) => fact !== null && fact !== undefined && fact !== false);
  const list = shown.flatMap(([name, fact]) => [el("dt", {}, name), el("dd", {}, fact)]);
  return [el("h3", {}, "What the service knows"), el("dl", { class: "facts" }, list)];
}

function overrideOf({ id, action, scope, reason, expires_at: expires, shadow }) {
  const end = expires === null ? "" : `, until ${instant(expires)}`;
  const effect = shadow ? "would decide if it were not a shadow" : (ACTIONS[action] ?? action);
  return [quoted(`${id} (${scope}) ${effect}${end}.`, 300), " ", quoted(reason, 300)];
}

function copyOf({ url, final_url: final, fetched_at: fetched, age, outcome, stale, truncated }) {
  const from = final === null ? url : `${url}, redirected to ${final}`;
  if (fetched === null) return [quoted(from, 300), ": none is held."];
  const what = { successful: "fetched", unavailable: "found missing" }[outcome] ?? "asked for";
  const parts = [quoted(from, 300), `: ${what} ${ago(age)} (${instant(fetched)}).`];
  if (truncated) parts.push(" It is longer than crawlers read, and was cut.");
  if (stale) parts.push(" This copy stands in while fetches fail.");
  return parts;
}

function lastFetch({ cause, failing_since: since, outcome, status }) {
  if (outcome === "blocked_address") return "The host resolves to an address that is not public. An operator can permit it with ALLOW_ADDRESSES.";
  if (cause === null) return outcome === "unavailable" && `status ${status}`;
  return `failed: ${causeOf(cause)}${since === null ? "" : `; failing since ${instant(since)}`}`;
}

function edgeOf({ state, status, since, reported_at: last, count: many }) {
  const withheld = state === "priced" ? "have a price for this agent" : "are refused to this agent";
  const first = many > 1 ? ` (${count(many, "report")} since ${instant(since)})` : "";
  return `By reports of crawlers, pages ${withheld}${first}; the last had status ${status}, ${instant(last)}.`;
}

function rateOf({ rate, next_rate: next }) {
  const parts = [pace(rate)];
  if (rate !== null) parts.push(` (${rate.line === null ? rate.source : `${rate.source} of line ${rate.line}`})`);
  if (next !== null) parts.push(`, until ${instant(next.at)}; then ${pace(next.interval === null ? null : next)}`);
  return parts.join("");
}
