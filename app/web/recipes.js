// Recipes: what owners often want of a file, written into a second version, so that the table shows whom it hits.

import { crawlersOf } from "./presets.js";
import { judge } from "./api.js";
import { listed } from "./crawlers.js";
import { linesOf } from "./text.js";

const AGENT_LINE = /^\uFEFF?[ \t]*user-?agent[ \t]*:/i;
const SECONDS = 10;
const SAMPLE = { urls: ["https://example.com/"], agents: ["*"], groups: true };
const OF_IMAGES = ["Googlebot-Image", "YandexImages", "msnbot-media", "Baiduspider-image"];

/** Name -> what changes about a file, {lines, groups}: {lines, what, shown}, the crawlers to show it by. */
const RECIPES = {
  async training(file, signal) {
    const names = await crawlersOf("ai-training", signal);
    return closed(file, names, "AI training is shut out", ["@ai-training"]);
  },
  images: (file) => closed(file, OF_IMAGES, "Image searches are shut out", OF_IMAGES),
  async search(file, signal) {
    const { lines, star } = file;
    const names = without(file, await crawlersOf("search", signal));
    const rules = new Set(star?.rules.map(({ line }) => line));
    const kept = new Set([...rules, ...Object.values(star?.declared ?? {}).flat().map(({ line }) => line)]);
    const others = lines.filter((_, at) => !rules.has(at + 1));
    const left = star === null ? group(others, ["*"], ["Disallow: /"]) : inserted({ star, lines: others }, ["Disallow: /"]);
    const open = rules.size > 0 ? [] : ["Disallow:"];
    const same = lines.filter((_, at) => kept.has(at + 1));
    return { lines: group(left, names, [...open, ...same]), what: "Only search engines are let in", shown: ["@ai-assistant", "@seo"] };
  },
  slow(file) {
    const { lines, star } = file;
    if (star?.declared.crawl_delays.length > 0) return { lines, what: "The rules for all others have a Crawl-delay already", shown: [] };
    const wait = [`Crawl-delay: ${SECONDS}`];
    const what = `Crawlers without rules of their own fetch a page every ${SECONDS} s, if they read Crawl-delay. Google does not`;
    return { lines: star === null ? group(lines, ["*"], wait) : inserted(file, wait), what, shown: [] };
  },
};

/** The text of a file by a recipe: {text, what, shown}, null if nothing is to be changed; throws ServiceError. */
export async function byRecipe(name, text, signal) {
  const { groups } = await judge({ robots: text, ...SAMPLE }, signal);
  const star = groups.find(({ agents }) => agents.includes("*")) ?? null;
  const { lines, ...said } = await RECIPES[name]({ lines: linesOf(text), groups, star }, signal);
  return { ...said, text: lines.length > linesOf(text).length ? `${lines.join("\n")}\n` : null };
}

/** A group of its own closes the site to those crawlers that have none; the rules of the others stay. */
function closed(file, names, what, shown) {
  const left = without(file, names);
  const kept = names.filter((name) => !left.includes(name));
  const rest = kept.length === 0 ? "" : `. ${listed(kept)} ${kept.length === 1 ? "keeps its rules" : "keep their rules"}`;
  return { lines: group(file.lines, left, ["Disallow: /"]), what: what + rest, shown };
}

/** The names that no group of the file has. */
function without({ groups }, names) {
  const named = new Set(groups.flatMap(({ agents }) => agents.map((name) => name.toLowerCase())));
  return names.filter((name) => !named.has(name.toLowerCase()));
}

function group(lines, names, rules) {
  const end = lines.findLastIndex((line) => line.trim() !== "") + 1;
  return names.length === 0 ? lines : [...lines.slice(0, end), ...(end > 0 ? [""] : []), ...names.map((name) => `User-agent: ${name}`), ...rules];
}

/** The lines with some in the group for all others, behind its names. */
function inserted({ lines, star }, some) {
  let at = star.line - 1;
  for (let names = 0; at < lines.length && names < star.agents.length; at += 1) names += AGENT_LINE.test(lines[at]);
  return [...lines.slice(0, at), ...some, ...lines.slice(at)];
}
