// The crawlers of an answer: their names, their kinds, and how they fare.

import { DIALECTS } from "./labels.js";

/** The name of the crawler of a row: its token, in the case that was asked for. */
export function nameOf({ agent, asked }) {
  return asked?.toLowerCase() === agent.toLowerCase() ? asked : agent;
}

/** "A, B and C", or "A, B and 7 others" of more than `most`. */
export function listed(names, most = 4) {
  if (names.length > most) return `${names.slice(0, most - 1).join(", ")} and ${names.length - most + 1} others`;
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
}

/** The crawlers of an answer: {name, kind, rows} with a row for each URL; each dialect is one of its own. */
export function crawlersOf(rows, perAgent, kinds) {
  return (rows[0] ?? []).map((first, column) => ({
    name: perAgent > 1 ? `${nameOf(first)} (${DIALECTS[first.dialect] ?? first.dialect})` : nameOf(first),
    kind: kinds?.get(first.agent.toLowerCase()) ?? kinds?.get(nameOf(first).toLowerCase()) ?? "other",
    rows: rows.map((row) => row[column]),
  }));
}

/** Crawlers, {kind, rows}, by their kind: [kind, members], those with the most that are shut out first. */
export function byKind(members) {
  const shut = (some) => some.filter(isShutOut).length;
  return [...Map.groupBy(members, ({ kind }) => kind)].sort(([, left], [, right]) => shut(right) - shut(left));
}

/** Whether a crawler may fetch none of the URLs. */
export function isShutOut({ rows }) {
  return rows.every(({ verdict }) => verdict === "disallow");
}

/** Whether the file has a group for the crawler by its name. */
export function isNamed({ rows: [{ group }] }) {
  return Boolean(group) && group.token !== "*";
}

/** How many of the URLs the crawler may not fetch. */
export function blockedOf({ rows }) {
  return rows.filter(({ verdict }) => verdict === "disallow").length;
}
