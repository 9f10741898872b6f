/** What is asked about a page, by the names of the HTTP API. */

const URL_AUTHORITY = /^([^:/?#]*:\/\/)([^/?\\]*)/;
const OFFSET = /(?:Z|[+-]\d\d:\d\d)$/;

/**
 * How to ask about pages, as members of a question; `members` has those that are not undefined. Throws TypeError for invalid
 * options.
 */
export function asking({ agent, purpose, enforce, dialect, maxAge, asOf, ...others }, defaults = {}) {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new TypeError(`unknown option '${unknown}'`); // purposes would otherwise be no question of purpose
  const own = {
    agent: names('agent', agent),
    purpose: names('purpose', purpose),
    enforce: enforce === undefined ? undefined : Boolean(enforce),
    dialect: dialect === undefined ? undefined : names('dialect', String(dialect)),
    max_age: maxAge === undefined ? undefined : checkedSeconds('maxAge', maxAge),
    as_of: asOf === undefined ? undefined : instant(asOf),
  };
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(given) };
}

/** The URL without credentials and fragment, which do not influence a verdict. */
export function withoutCredentials(url) {
  const bare = url.split('#', 1)[0];
  const found = URL_AUTHORITY.exec(bare);
  if (!found) return bare;
  return found[1] + found[2].slice(found[2].lastIndexOf('@') + 1) + bare.slice(found[0].length);
}

/** Scheme and authority of a URL. */
export function originOf(url) {
  return (URL_AUTHORITY.exec(withoutCredentials(url))?.[0] ?? url).toLowerCase();
}

/** The host of a URL: its pages share a pace. */
export function siteOf(url) {
  return originOf(url).replace(/^[^:]*:\/\//, '').replace(/:[0-9]*$/, '');
}

/** The agent that an answer is about: of several, the one that the service names. */
export function answeredAgent(asked, message) {
  if (!Array.isArray(asked)) return asked;
  return asked.includes(message?.agent) ? message.agent : asked[0];
}

export function checkedSeconds(name, seconds) {
  if (!(Number.isFinite(seconds) && seconds >= 0)) throw new TypeError(`${name}=${seconds} is not a number of seconds`);
  return seconds;
}

function names(option, value) {
  if (value === undefined) return undefined;
  const all = [value].flat().map(String);
  if (!all.length || all.some((one) => !one.trim())) throw new TypeError(`${option} is empty`);
  return Array.isArray(value) ? all : all[0];
}

function instant(asOf) {
  const text = asOf instanceof Date && !Number.isNaN(asOf.getTime()) ? asOf.toISOString() : asOf;
  if (typeof text !== 'string' || !OFFSET.test(text) || Number.isNaN(Date.parse(text))) {
    throw new TypeError(`asOf=${String(asOf)} is not a Date, or a time as 2026-11-21T18:30:00Z`);
  }
  return text;
}
