// Labels and phrases for the answers of the service.

import { count } from "./text.js";

export const DIALECTS = {
  rfc9309: "the standard",
  google: "Google",
  seznam: "Seznam",
  draft1996: "1996 draft",
  v2: "Robots 2.0",
};

/** Whose rules each dialect is; follows "interpreted". */
export const READ = {
  rfc9309: "by the standard (RFC 9309)",
  google: "as Google does",
  seznam: "as Seznam does",
  draft1996: "by the draft of 1996",
  v2: "as robots of version 2.0 do",
};

/** What a page may be wanted for. */
export const PURPOSES = { search: "Search", "ai-input": "AI input", "ai-train": "AI training" };

/** What a site states about a purpose. */
export const PURPOSE_STATES = { yes: "Yes", no: "No", unstated: "Unstated" };

export const SIGNS = { allow: "✓", disallow: "✕", defer: "↻", none: "?" };

/** A verdict in plain words; the API's own word is shown as a tooltip. */
export const VERDICTS = { allow: "Allowed", disallow: "Blocked", defer: "Try later", none: "No answer" };

/** What crawlers are for, by their category. */
export const KINDS = {
  search: "Search engines",
  "ai-training": "AI training",
  "ai-search": "AI search",
  "ai-assistant": "AI assistants",
  archiver: "Archives",
  seo: "SEO tools",
  social: "Social media",
  monitoring: "Monitoring",
  other: "Others",
};

/** What made a fetch fail; follows "could not be fetched: ". */
const CAUSES = {
  server_error: "the server answered with an error",
  too_many_requests: "the server refused because of too many requests (429)",
  timeout: "the server did not answer in time",
  dns: "the host name was not found",
  tls: "no secure connection (TLS) could be set up",
  connection: "the connection failed or was refused",
  proxy: "the proxy of this service opened no way to the server",
  redirect_loop: "too many redirects",
  cookie_loop: "redirects that only end for a browser that keeps cookies",
  refused_redirect: "it redirects to an address that is not permitted",
  bad_response: "the server's response was not valid HTTP",
  challenge: "a challenge page for humans came instead",
  html_page: "an HTML page came instead, an error page or a challenge",
};

const SHORT = {
  no_match: "no rule",
  no_group: "not named",
  no_rules: "no rules",
  implicit: "robots.txt itself",
  unavailable: "no file",
  forbidden: "the file is forbidden",
  unreachable: "fetch failed",
  challenge: "challenge page",
  pending: "being fetched",
  too_complex: "too complex to match",
  blocked_address: "not a public address",
  overridden: "override",
  usage: "use not permitted",
  no_answer: "see below",
};

/** What decided, short enough for a table cell. */
export function briefly(row) {
  return row.rule ? `line ${row.rule.line}` : (SHORT[row.reason] ?? row.reason);
}

/** What made a fetch fail, in words. */
export function causeOf(cause) {
  return CAUSES[cause] ?? cause.replaceAll("_", " ");
}

/** The pace of a rate: "one page every 10 s", or "no limit". */
export function pace(rate) {
  if (rate === null) return "no limit";
  if (rate.interval === 0) return "no delay requested";
  return `one page every ${duration(rate.interval)}`;
}

/** Seconds for people: 0.2 s, 90 s, 10 min, 1.5 h. */
export function duration(seconds) {
  if (seconds < 120) return `${Number(seconds.toPrecision(3))}\u00a0s`;
  const minutes = seconds / 60;
  if (minutes < 120) return `${Number(minutes.toPrecision(3))}\u00a0min`;
  const hours = minutes / 60;
  return `${Number(hours.toPrecision(3)).toLocaleString("en")}\u00a0h`;
}

const UNITS = [[86_400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];

/** An instant of today or of these days, in the reader's zone: 20:34. */
export function clock(text) {
  return new Date(text).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** A sentence of the service with its instants as times of the reader's clock. */
export function inReadersTime(text) {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, clock);
}

/** A length of time in its largest whole unit: "3 hours". */
export function roughly(seconds) {
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? UNITS.at(-1);
  return count(Math.floor(seconds / size), name);
}

/** An age in seconds in words: "3 hours ago". */
export function ago(seconds) {
  return seconds < 5 ? "just now" : `${roughly(seconds)} ago`;
}

/** How far an instant is away in words: "in 5 minutes". */
export function until(instant) {
  const seconds = (Date.parse(instant) - Date.now()) / 1000;
  return seconds < 1 ? "now" : `in ${roughly(seconds)}`;
}

/** The line that a rate comes from, and the declared delay if the dialect caps it. */
export function origin(rate, dialect) {
  if (rate.line === null) return "operator's override";
  const line = `${rate.source === "crawl-delay" ? "Crawl-delay" : "Request-rate"} of line ${rate.line}`;
  if (rate.declared_interval <= rate.interval) return line;
  const name = DIALECTS[dialect] ?? dialect;
  return `${line}, which asks for ${duration(rate.declared_interval)}; ${name} waits no longer than this`;
}

/** An RFC 3339 instant for people: 21 Nov 2026, 10:00 UTC. */
export function instant(text) {
  const options = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
  const at = new Date(text);
  return `${at.toLocaleString("en-GB", { ...options, timeZone: "UTC", hour12: false })} UTC`;
}
