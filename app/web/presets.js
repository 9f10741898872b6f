// Lists of crawlers to test with one click, or by their category: "@ai-training".

import { agentsOf, categories, ServiceError } from "./api.js";

const AGENT_LINE = /^[ \t]*user-?agent[ \t]*:[ \t]*([^\s#]+)/gim;
const CATEGORY = /^@([a-z-]+)$/i;

const known = new Map();

/** Well-known crawlers of search, AI training, AI search and AI assistants. */
const WELL_KNOWN = ["Googlebot", "Bingbot", "GPTBot", "OAI-SearchBot", "ChatGPT-User"];
const MOST_NAMED = 12;

let kinds = null;

/** What known crawlers are for, by their names in lower case, asked for once; null if the service does not say. */
export function kindsOfCrawlers() {
  kinds ??= categories(new AbortController().signal).catch((error) => {
    if (!(error instanceof ServiceError)) throw error;
    kinds = null;
    return null;
  });
  return kinds;
}

/** The crawlers to ask about for a file: those that it names, the first of many, and the well-known ones. */
export function crawlersFor(file) {
  const named = namedIn(file).filter((name) => name !== "*").slice(0, MOST_NAMED);
  const names = new Set(named.map((name) => name.toLowerCase()));
  return [...named, ...WELL_KNOWN.filter((name) => !names.has(name.toLowerCase()))];
}

/** The crawlers of a category, asked for once; throws ServiceError. */
export async function crawlersOf(category, signal) {
  if (!known.has(category)) known.set(category, await agentsOf(category, signal));
  return known.get(category);
}

/**
 * The lines of crawlers, {line, text}, with the crawlers of a category in place of its name. A category that the
 * service does not know stays as it is: the service says so when it is asked.
 */
export async function withCategories(agents, signal) {
  if (!agents.some(({ text }) => CATEGORY.test(text))) return agents;
  const expanded = await Promise.all(agents.map((agent) => expand(agent, signal)));
  const names = new Set(agents.map(({ text }) => text.toLowerCase()));
  // A crawler that is named, or is of two categories, has one column.
  return expanded.flatMap((lines, at) =>
    lines.filter(({ text }) => lines[0] === agents[at] || (!names.has(text.toLowerCase()) && names.add(text.toLowerCase()))),
  );
}

async function expand(agent, signal) {
  const [, category] = CATEGORY.exec(agent.text) ?? [];
  if (category === undefined) return [agent];
  try {
    return (await crawlersOf(category.toLowerCase(), signal)).map((text) => ({ line: agent.line, text }));
  } catch (error) {
    if (error instanceof ServiceError && error.parameter === "category") return [agent];
    throw error;
  }
}

/** The crawlers that a file names, in order, each once; `*` at the end if it is among them. */
export function namedIn(file) {
  const names = new Map();
  for (const [, name] of file.matchAll(AGENT_LINE)) if (!names.has(name.toLowerCase())) names.set(name.toLowerCase(), name);
  const star = names.delete("*");
  return [...names.values(), ...(star ? ["*"] : [])];
}
