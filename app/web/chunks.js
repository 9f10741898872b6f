// A question of any size, put to the service in parts.

import { decide, judge, ServiceError } from "./api.js";
import { fileQuestion, wanted } from "./file-question.js";
import { withCategories } from "./presets.js";

const CHUNK = 1000;
const MOST_ROWS = 50_000;
const MOST_UNREAD = 25;

/**
 * What a file, {text, truncated}, says to the question: {urls, agents, dialects, purposes, unread, rows, warnings, sitemaps}, with an array of rows for
 * each of the URLs. Lines that the service cannot read are in `unread` instead: it reports the first of them, so the part is
 * sent again without it. `progress(done, total)` is called after each part, in rows. Throws ServiceError.
 */
export async function testFile({ text, truncated }, { urls, agents, dialects, purposes }, signal, progress) {
  const read = { urls: [], agents: await withCategories([...agents], signal), dialects, purposes, unread: { urls: [], agents: [] }, rows: [], warnings: [], sitemaps: [] };
  let left = urls;
  while (left.length > 0 && read.agents.length > 0) {
    const width = widthOf(read);
    bounded(urls.length * width);
    const part = left.slice(0, Math.max(1, Math.floor(CHUNK / width)));
    const asked = { urls: part.map(textOf), agents: read.agents.map(textOf), dialects, purposes };
    try {
      const answer = await judge(fileQuestion({ text, truncated }, asked), signal);
      const answered = Math.floor(answer.rows.length / width);
      if (answered === 0) throw new ServiceError("The question is too large: name fewer crawlers.");
      read.urls.push(...part.slice(0, answered));
      const rows = answer.rows.map((row, at) => ({
        ...(row.problem === undefined ? row : failed(row.problem, row)),
        asked: read.agents[Math.floor((at % width) / perAgent(read))].text,
      }));
      read.rows.push(...perUrl(rows, width, answered));
      read.warnings = answer.warnings;
      read.sitemaps = answer.sitemaps;
      left = left.slice(answered);
      progress(read.rows.length * width, urls.length * width);
    } catch (error) {
      const place = /^(urls|agents)\[(\d+)\]$/.exec(error.parameter ?? "");
      if (!(error instanceof ServiceError) || place === null) throw error;
      const [, name, index] = place;
      const lines = name === "urls" ? (left = [...left]) : read.agents;
      const [line] = lines.splice(Number(index), 1);
      read.unread[name].push({ ...line, detail: error.message });
      if (read.unread[name].length > MOST_UNREAD) {
        error = new ServiceError(`More than ${MOST_UNREAD} lines cannot be read; the first ones are marked.`);
        throw Object.assign(error, { unread: read.unread });
      }
    }
  }
  return read;
}

/** What the service decides about the question now, in the same form. */
export async function askService({ urls, agents: named, dialects, purposes }, signal, progress) {
  const agents = await withCategories(named, signal);
  const columns = agents.flatMap((agent) => (dialects.length > 0 ? dialects : [undefined]).map((dialect) => ({ agent, dialect })));
  const items = urls.flatMap((url) => columns.map(({ agent, dialect }) => ({ url, agent, dialect })));
  bounded(items.length);
  const answers = [];
  for (let from = 0; from < items.length; from += CHUNK) {
    const wire = items.slice(from, from + CHUNK).map((item) => ({ ...item, url: item.url.text, agent: item.agent.text, purpose: wanted(purposes) }));
    answers.push(...(await decide(wire, signal)));
    progress(answers.length, items.length);
  }
  const bad = { url: new Map(), agent: new Map() };
  answers.forEach(({ problem }, at) => bad[problem?.parameter]?.set(items[at][problem.parameter], problem.detail));
  const rows = items.map((item, at) => ({
    ...(answers[at].problem === undefined ? answers[at] : failed(answers[at].problem, textsOf(item))),
    asked: item.agent.text,
  }));
  const heard = columns.map(({ agent }) => !bad.agent.has(agent));
  const unreadLines = (lines) => [...lines].map(([line, detail]) => ({ ...line, detail }));
  return {
    urls: urls.filter((url) => !bad.url.has(url)),
    agents: agents.filter((agent) => !bad.agent.has(agent)),
    dialects,
    purposes,
    unread: { urls: unreadLines(bad.url), agents: unreadLines(bad.agent) },
    rows: perUrl(rows, columns.length, urls.length)
      .filter((_, at) => !bad.url.has(urls[at]))
      .map((row) => row.filter((_, column) => heard[column])),
    warnings: [],
    sitemaps: answers[0]?.sitemaps ?? [],
  };
}

/** A row in the place of an answer that could not be given. */
function failed(problem, { url, agent, dialect }) {
  const explanation = { summary: problem.detail };
  return { url, agent, dialect, verdict: "none", reason: "no_answer", explanation, rule: null, group: null };
}

function textsOf({ url, agent, dialect }) {
  return { url: url.text, agent: agent.text, dialect: dialect ?? "" };
}

function widthOf(read) {
  return read.agents.length * perAgent(read);
}

function perAgent({ dialects }) {
  return Math.max(dialects.length, 1);
}

function bounded(rows) {
  if (rows <= MOST_ROWS) return;
  throw new ServiceError(`${rows.toLocaleString("en")} verdicts: this page asks for ${MOST_ROWS.toLocaleString("en")} at most.`);
}

function perUrl(rows, width, urls) {
  return Array.from({ length: urls }, (_, url) => rows.slice(url * width, (url + 1) * width));
}

function textOf({ text }) {
  return text;
}
