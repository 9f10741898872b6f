// Lists of crawlers to test with one click, or by their category: "@ai-training".

import { agentsOf, ServiceError } from "./api.js";

const AGENT_LINE = /^[ \t]*user-?agent[ \t]*:[ \t]*([^\s#]+)/gim;
const CATEGORY = /^@([a-z-]+)$/i;

const known = new Map();

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
