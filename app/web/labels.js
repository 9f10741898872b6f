// Labels and phrases for the answers of the service.

export const DIALECTS = {
  rfc9309: "RFC 9309",
  google: "Google",
  seznam: "Seznam",
  draft1996: "Draft of 1996",
  v2: "Version 2.0",
};

/** How each dialect reads the file; follows "with the file read". */
export const READ = {
  rfc9309: "as RFC 9309 says",
  google: "as Google reads it",
  seznam: "as Seznam reads it",
  draft1996: "by the draft of 1996",
  v2: "as robots of version 2.0 do",
};

export const SIGNS = { allow: "✓", disallow: "✕", defer: "…" };

const SHORT = {
  no_match: "no rule matches",
  no_group: "no group",
  no_rules: "no rules",
  implicit: "robots.txt itself",
  unavailable: "no file",
  forbidden: "the file is forbidden",
  challenge: "blocked by a challenge page",
  too_complex: "too expensive to evaluate",
  blocked_address: "the address is not public",
};

const LONG = {
  no_match: "The group has rules, but none matches this page.",
  no_group: "No group applies to this crawler.",
  no_rules: "The group has no rules in this dialect.",
  implicit: "robots.txt itself may always be fetched.",
};

/** What decided, short enough for a table cell. */
export function briefly(row) {
  return row.rule ? `line ${row.rule.line}` : (SHORT[row.reason] ?? row.reason);
}

/** The reason as a sentence, if no rule decided. */
export function inFull(row) {
  return LONG[row.reason] ?? `The reason is ${row.reason}.`;
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

/** The line that a rate comes from, and the declared delay if the dialect caps it. */
export function origin(rate, dialect) {
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
