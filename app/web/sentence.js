// The sentence that answers: who may fetch what, and which line decides. Never a count of verdicts alone.

import { byKind, isShutOut, listed } from "./crawlers.js";
import { causeOf, clock, KINDS } from "./labels.js";
import { count, el, plain, quoted } from "./text.js";

/** Crawlers up to which the sentence names each. */
const FEW = 8;
/** Clauses about crawlers that fare alike; more are left to the table. */
const MOST_CLAUSES = 4;

export const QUESTION = "Whose robots.txt do you want to test?";

const no = (...words) => el("span", { class: "no" }, ...words);
const yes = (...words) => el("span", { class: "yes" }, ...words);
const odd = (...words) => el("span", { class: "odd" }, ...words);

/** What the file says to crawlers, as nodes. `isKnown`: what they are for is known. */
export function sentence(crawlers, isKnown) {
  return crawlers.length > FEW ? byPurpose(crawlers, isKnown) : byCrawler(crawlers);
}

/** What is the case while there is no file, by the facts of its fetch, as nodes; null if there is one. */
export function withoutFile({ robots, verdict, retry_at: retry }) {
  if (!robots || robots.outcome === "successful" || robots.outcome === undefined || robots.outcome === null) return null;
  const name = plain(new URL(robots.url).host);
  const host = () => quoted(name, 100);
  const again = retry ? `, and ask again at ${clock(retry)}` : "";
  const wait = verdict === "allow" ? "Crawlers may fetch everything." : `Crawlers fetch nothing${again}.`;
  const why = robots.status !== null && robots.status >= 400 ? `error ${robots.status}` : causeOf(robots.cause ?? "unknown");
  return {
    unavailable: robots.status === 404 || robots.status === 410
      ? [host(), " has no robots.txt: crawlers may fetch everything."]
      : [host(), ` refuses its robots.txt (${why}). ${wait}`],
    unreachable: [odd(host(), ` did not give its robots.txt: ${why}. `), wait],
    challenge: [odd(host(), " shows a challenge page in place of its robots.txt. "), wait],
    blocked_address: [host(), " is not a public address, so its robots.txt is not fetched."],
  }[robots.outcome] ?? null;
}

/** What a web page in the place of the file means. */
export function ofWebPage() {
  return [odd("This is a web page, not a robots.txt. "), "Crawlers find no rule in it, so they may fetch everything."];
}

/** "For Googlebot and Bingbot, your change blocks 1 URL and opens 1 URL. For GPTBot, it opens 8 URLs." */
export function ofChange(before, after, what) {
  const sorts = new Map();
  before.forEach(({ name, rows }, at) => {
    const turned = (wanted) => after[at].rows.filter(({ verdict }, url) => verdict === wanted && verdict !== rows[url].verdict).length;
    const [blocks, opens] = [turned("disallow"), turned("allow")];
    const others = after[at].rows.filter(({ verdict }, url) => verdict !== rows[url].verdict).length - blocks - opens;
    const key = `${blocks} ${opens} ${others}`;
    if (key !== "0 0 0") sorts.set(key, { blocks, opens, others, names: [...(sorts.get(key)?.names ?? []), name] });
  });
  if (sorts.size === 0) return [`${what} alters no verdict.`.replace(/^./, (first) => first.toUpperCase())];
  const clauses = [...sorts.values()].slice(0, MOST_CLAUSES).flatMap(({ blocks, opens, others, names }, at) => {
    const parts = [blocks > 0 && no(`blocks ${count(blocks, "URL")}`), opens > 0 && yes(`opens ${count(opens, "URL")}`), others > 0 && `changes ${count(others, "URL")}`];
    const said = parts.filter(Boolean).flatMap((part, index) => (index > 0 ? [" and ", part] : [part]));
    return ["For ", quoted(listed(names), 300), `, ${at === 0 ? what : "it"} `, ...said, ". "];
  });
  return [...clauses, ...more(sorts.size)];
}

/** The share of each purpose that is shut out, as items of a list. */
export function shares(crawlers) {
  if (crawlers.length <= FEW) return [];
  return byKind(crawlers).map(([kind, members]) => {
    const out = members.filter(isShutOut).length;
    const meter = el("div", { class: "meter", "aria-hidden": "true" });
    if (out > 0) {
      const part = el("i", { class: out === members.length ? "all" : null });
      part.style.width = `${(100 * out) / members.length}%`;
      meter.append(part);
    }
    const all = members.length === 1 ? "1 crawler" : `all ${members.length}`;
    return el("li", {}, el("b", {}, KINDS[kind] ?? kind), " ", el("span", {}, out === 0 ? `${all} let in` : `${out} of ${members.length} shut out`), meter);
  });
}

function byCrawler(crawlers) {
  const sorts = new Map();
  for (const { name, rows } of crawlers) {
    const free = rows.filter(({ verdict }) => verdict === "allow").length;
    const later = rows.filter(({ verdict }) => verdict === "defer" || verdict === "none").length;
    const lines = new Set(rows.filter(({ verdict }) => verdict === "disallow").map(({ rule }) => rule?.line));
    const [line] = free === 0 && lines.size === 1 ? lines : [];
    const closes = rows.every(({ rule }) => rule?.pattern === "/" || rule?.pattern === "/*");
    const key = `${free} ${later} ${line}`;
    if (!sorts.has(key)) sorts.set(key, { free, later, line, closes, names: [] });
    sorts.get(key).names.push(name);
  }
  const many = crawlers[0].rows.length;
  const sorted = [...sorts.values()].sort((left, right) => right.free - left.free);
  const [first] = sorted;
  if (sorted.length === 1 && first.free === many && crawlers.length > 1) {
    return [yes("Open: "), `${crawlers.length === 2 ? "both crawlers" : `all ${crawlers.length} crawlers`} may fetch ${whole(many)}.`];
  }
  const clauses = sorted.slice(0, MOST_CLAUSES).flatMap((sort) => [quoted(listed(sort.names), 300), ...may(sort, many)]);
  return [...clauses, ...more(sorted.length)];
}

function may({ free, later, line, closes }, many) {
  if (later === many) return [" should ", odd("try again later"), ". "];
  if (free === many) return [" may fetch ", many === 1 ? yes("this URL") : yes(`all ${many} URLs`), ". "];
  if (free > 0) return [` may fetch ${free.toLocaleString("en")} of ${count(many, "URL")}. `];
  const why = line === undefined ? ". " : `: line ${line}${closes ? " closes the site" : ""}. `;
  return many === 1 ? [" may ", no("not"), " fetch it", why] : [" may fetch ", no("none"), why];
}

function byPurpose(crawlers, isKnown) {
  const out = crawlers.filter(isShutOut);
  const many = crawlers[0].rows.length;
  if (out.length === crawlers.length) return [no(`All ${crawlers.length} crawlers are shut out.`)];
  const rest = crawlers.filter((it) => !isShutOut(it));
  const free = new Set(rest.map(({ rows }) => rows.filter(({ verdict }) => verdict === "allow").length));
  const head = out.length === 0
    ? [yes("No crawler is shut out. ")]
    : [no(`${out.length} of ${crawlers.length} crawlers ${out.length === 1 ? "is" : "are"} shut out`), ": ", quoted(listed(out.map(({ name }) => name), 5), 300), ". "];
  if (free.size === 1) {
    const [few] = free;
    return [...head, `${out.length === 0 ? "They" : "All others"} may fetch ${few === many ? whole(many) : `${few} of ${count(many, "URL")}`}.`];
  }
  const search = crawlers.filter(({ kind }) => kind === "search");
  const isLetIn = isKnown && search.length > 1 && !search.some(isShutOut);
  return [...head, isLetIn ? "Search engines are let in." : "The others may fetch a part."];
}

function whole(many) {
  return many === 1 ? "this URL" : `all ${many.toLocaleString("en")} URLs`;
}

function more(sorts) {
  return sorts > MOST_CLAUSES ? ["The others differ: see the table."] : [];
}
