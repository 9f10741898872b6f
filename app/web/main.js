// The page: the question, the answer, and the selected verdict.

import { held, judge, ServiceError, version } from "./api.js";
import { Changes } from "./changes.js";
import { VersionList, period } from "./versions.js";
import { EXAMPLE } from "./example.js";
import { explanation } from "./why.js";
import { facts, without } from "./fetch-facts.js";
import { FileField } from "./file-field.js";
import { fragmentOf, isLink, stateOf } from "./state.js";
import { instant } from "./labels.js";
import { DiffSummary } from "./diff-summary.js";
import { Listing } from "./listing.js";
import { LineNumbers } from "./line-numbers.js";
import { Pace } from "./pace.js";
import { Table } from "./table.js";
import { count, el, linesOf, plain } from "./text.js";

const MOST_UNREAD = 25;

const at = (id) => document.getElementById(id);

const fields = { site: at("site"), robots: at("robots"), other: at("other") };
const robots = new FileField(fields.robots);
const other = new FileField(fields.other);
const urls = new LineNumbers(at("urls"), at("urls-said"));
const agents = new LineNumbers(at("agents"), at("agents-said"));
const ticks = [...document.querySelectorAll("input[name=dialect]")];
const sides = [...document.querySelectorAll("input[name=side]")];
const table = new Table(at("table"), choose);
const listing = new Listing(at("lines"), at("listing-facts"), at("warnings"));
const pace = new Pace(at("pace-body"));
const changes = new Changes(at("diff"), at("changes-facts"));
const versions = new VersionList(at("versions"), lookAt);
const diffSummary = new DiffSummary(at("diff-summary"), at("reader"));

/** The last answer: for each version its text, warnings, and rows, an array per page. */
let answered = null;
let chosen = [0, 0];
let asking = null;
let fetching = null;
let looking = null;

// --- state ---

function state() {
  return {
    site: fields.site.value.trim(),
    robots: robots.value,
    other: other.value,
    urls: urls.value,
    agents: agents.value,
    dialects: ticks.filter(({ checked }) => checked).map(({ value }) => value),
    chosen,
    side: side(),
    fetched: versions.site,
    earlier: versions.chosen && { id: versions.chosen.id, from: versions.chosen.from, reader: at("reader").value },
  };
}

async function restore(wanted) {
  drop();
  fields.site.value = wanted.site;
  robots.value = wanted.robots ?? "";
  other.value = wanted.other;
  at("comparing").open = wanted.other !== "";
  urls.value = wanted.urls;
  agents.value = wanted.agents;
  for (const tick of ticks) tick.checked = wanted.dialects.includes(tick.value);
  for (const radio of sides) radio.checked = Number(radio.value) === wanted.side;
  chosen = wanted.chosen;
  say("site", "");
  if ([...at("reader").options].some(({ value }) => value === wanted.earlier?.reader)) at("reader").value = wanted.earlier.reader;
  if (wanted.robots === null && wanted.site !== "") {
    await fetchFile();
    if (wanted.earlier !== null && versions.site !== null) await versions.find(wanted.earlier);
    return;
  }
  if (wanted.fetched !== null) versions.offer(wanted.fetched);
  // The text of the version comes from the service: a link is untrusted, and could show any text as one of the site.
  if (wanted.earlier === null || !(await versions.find(wanted.earlier))) await ask();
}

function side() {
  return Number(sides.find(({ checked }) => checked).value);
}

// --- asking ---

/** Send the question in the fields and show the answer. */
async function ask() {
  asking?.abort();
  const mine = (asking = new AbortController());
  at("verdicts").removeAttribute("aria-busy");
  const question = { urls: urls.asked, agents: agents.asked, dialects: state().dialects };
  const texts = [robots.value, other.value].filter((text, index) => index === 0 || text !== "");
  const since = versions.site?.file ? versions.chosen : null;
  if (versions.chosen === null) diffSummary.hide();
  quiet();
  if (question.urls.length === 0) urls.tell([{ line: null, detail: "Name at least one page." }]);
  if (question.agents.length === 0) agents.tell([{ line: null, detail: "Name at least one crawler." }]);
  if (question.urls.length === 0 || question.agents.length === 0) return;
  at("verdicts").setAttribute("aria-busy", "true");
  try {
    const read = await readable(question, texts[0], mine.signal);
    const answers = [read.answer];
    if (texts.length > 1 && read.answer !== null) {
      answers.push(await judge(wire(read, texts[1]), mine.signal).catch((error) => blame(error, "other")));
    }
    if (mine.signal.aborted) return;
    show(read, texts, answers, since);
  } catch (error) {
    if (error instanceof ServiceError) complain(error);
    else if (error.name !== "AbortError") throw error;
  } finally {
    if (asking === mine) at("verdicts").removeAttribute("aria-busy");
  }
}

/**
 * The answer for the valid lines, and the errors of the others. The service reports the first invalid line, so the
 * question is sent again without it.
 */
async function readable(question, file, signal) {
  const unread = { urls: [], agents: [] };
  for (;;) {
    if (question.urls.length === 0 || question.agents.length === 0) return { ...question, unread, answer: null };
    try {
      return { ...question, unread, answer: await judge(wire(question, file), signal) };
    } catch (error) {
      const place = /^(urls|agents)\[(\d+)\]$/.exec(error.parameter ?? "");
      if (!(error instanceof ServiceError) || place === null) throw error;
      const [, name, index] = place;
      const [line] = question[name].splice(Number(index), 1);
      unread[name].push({ ...line, detail: error.message });
      if (unread[name].length > MOST_UNREAD) {
        tellUnread(unread);
        throw new ServiceError(`More than ${MOST_UNREAD} lines cannot be read; the first ones are marked.`);
      }
    }
  }
}

function wire({ urls: pages, agents: names, dialects }, file) {
  return { robots: file, urls: pages.map(({ text }) => text), agents: names.map(({ text }) => text), dialects };
}

function blame(error, parameter) {
  throw error instanceof ServiceError ? new ServiceError(error.message, parameter) : error;
}

function complain({ message, parameter }) {
  const place = { robots: "robots", other: "other", url: "site" }[parameter] ?? "question";
  say(place, message, true);
  at("summary").textContent = "No answer.";
}

function tellUnread(unread) {
  urls.tell(unread.urls);
  agents.tell(unread.agents);
}

function quiet() {
  for (const name of ["robots", "other", "question"]) say(name, "");
  urls.clear();
  agents.clear();
}

function say(name, text, wrong = false) {
  const said = at(`${name}-said`);
  said.textContent = plain(text);
  said.classList.toggle("wrong", wrong);
  if (name in fields) {
    if (wrong) fields[name].setAttribute("aria-invalid", "true");
    else fields[name].removeAttribute("aria-invalid");
  }
}

// --- fetching ---

async function fetchFile() {
  fetching?.abort();
  const mine = (fetching = new AbortController());
  const site = fields.site.value.trim();
  drop();
  at("linked").hidden = true;
  if (site === "") return say("site", "Name a site, as in https://www.example.com/", true);
  fields.site.value = site.includes("://") ? site : `https://${site}`;
  say("site", "Fetching …");
  try {
    const file = await held(fields.site.value, mine.signal);
    if (mine.signal.aborted) return undefined;
    versions.offer({ url: fields.site.value, at: file.robots.fetched_at, file: file.text !== null });
    if (file.text === null) return say("site", without(file.robots), true);
    robots.value = file.text;
    say("site", facts(file.robots));
    if (urls.value === EXAMPLE.urls || urls.asked.length === 0) urls.value = fields.site.value;
    return await ask();
  } catch (error) {
    if (error instanceof ServiceError) return say("site", error.message, true);
    if (error.name !== "AbortError") throw error;
    return undefined;
  }
}

// --- earlier versions ---

/** Show an earlier version, beside the current file or instead of it if there is none; true once it is shown. */
async function lookAt(wanted) {
  looking?.abort();
  const mine = (looking = new AbortController());
  const { site } = versions;
  at("linked").hidden = true;
  versions.say("Fetching …");
  try {
    const { text } = await version(site.url, wanted.id, mine.signal);
    if (mine.signal.aborted) return false;
    versions.mark(wanted);
    const beside = site.file ? other : robots;
    beside.value = text ?? "";
    if (site.file) at("comparing").open = text !== null;
    const comparison = diffSummary.show(site, wanted);
    await Promise.all([ask(), comparison]);
    if (mine.signal.aborted) return false;
    versions.say(...seen(text), " ", toChanges());
    return true;
  } catch (error) {
    if (error instanceof ServiceError) versions.complain(error.message);
    else if (error.name !== "AbortError") throw error;
    return false;
  }
}

function seen(text) {
  const when = period(versions.chosen);
  if (!versions.site.file) return [`The field shows the file as it was, ${when}.`];
  if (text === null) return [`There was no file to compare, ${when}.`];
  return [`The second version is the file as it was, ${when}.`];
}

function toChanges() {
  const button = el("button", { type: "button", class: "to-line" }, "See what changed");
  button.addEventListener("click", () => {
    const place = at("changes").hidden || at("because").hidden ? at("diff-summary") : at("changes");
    place.focus();
    place.scrollIntoView();
  });
  return button;
}

/** Reset the earlier versions of the last site. */
function drop() {
  looking?.abort();
  if (versions.chosen !== null && versions.site.file) other.value = "";
  versions.forget();
  diffSummary.hide();
}

// --- the answer ---

function show(read, texts, answers, since) {
  tellUnread(read.unread);
  at("stale").hidden = true;
  if (answers[0] === null) {
    answered = null;
    at("because").hidden = true;
    table.show(lines(read), read.agents.length, [], null, false);
    at("summary").textContent = "No line of the question can be read.";
    return;
  }
  const width = read.agents.length * Math.max(read.dialects.length, 1);
  answered = answers.map((answer, index) => ({
    text: texts[index],
    lines: linesOf(texts[index]),
    warnings: answer.warnings,
    rows: read.urls.map((_, page) => answer.rows.slice(page * width, (page + 1) * width)),
  }));
  const [before, after] = answered;
  table.show(lines(read), read.agents.length, before.rows, after?.rows ?? null, since !== null);
  at("summary").textContent = summary(read, before, after, since);
  at("sides").hidden = after === undefined;
  at("changes").hidden = after === undefined;
  if (after === undefined) sides[0].checked = true;
  else if (since === null) changes.show(before.lines, after.lines);
  else changes.show(after.lines, before.lines);
  at("second").textContent = since === null ? "second version" : "earlier version";
  at("changes-title").textContent = since === null ? "From the file to the second version" : `From the version of ${instant(since.from)} to the file`;
  at("because").hidden = false;
  chosen = [Math.min(chosen[0], read.urls.length - 1), Math.min(chosen[1], width - 1)];
  showSide();
}

/** The lines of the question for the table, in order: the answered and the invalid ones. */
function lines(read) {
  const good = read.urls.map(({ line, text }, row) => ({ line, text, row }));
  const bad = read.unread.urls.map(({ line, text, detail }) => ({ line, text, trouble: detail }));
  return [...good, ...bad].sort((left, right) => left.line - right.line);
}

function summary(read, before, after, since) {
  const verdicts = before.rows.flat();
  const number = (name) => verdicts.filter(({ verdict }) => verdict === name).length;
  const parts = [`${count(verdicts.length, "verdict")}: ${number("allow")} allow, ${number("disallow")} disallow.`];
  if (after !== undefined) {
    const changed = after.rows.flat().filter(({ verdict }, index) => verdict !== verdicts[index].verdict).length;
    const many = changed === 0 ? "none" : changed;
    if (since !== null) parts.push(`Since the earlier version, ${many} of them ${changed === 1 ? "has" : "have"} changed.`);
    else parts.push(`With the second version, ${many} of them ${changed === 1 ? "changes" : "change"}.`);
  }
  const unread = read.unread.urls.length + read.unread.agents.length;
  if (unread > 0) parts.push(`${count(unread, "line")} of the question could not be read.`);
  if (before.warnings.length > 0) parts.push(`${count(before.warnings.length, "warning")} about the file.`);
  return parts.join(" ");
}

function choose(row, column) {
  chosen = [row, column];
  showChosen();
}

/** Show the version that is selected for the explanation. */
function showSide() {
  const version = answered[side()];
  listing.show(version.lines, new TextEncoder().encode(version.text).length, version.warnings);
  showChosen();
}

function showChosen() {
  const row = answered[side()].rows[chosen[0]][chosen[1]];
  table.mark(...chosen);
  at("why-body").replaceChildren(...explanation(row, (line) => listing.reveal(line)));
  listing.light(row);
  pace.show(row);
}

// --- the link ---

async function link() {
  const { fragment, left } = await fragmentOf(state());
  const size = count(new TextEncoder().encode(robots.value + other.value).length, "byte");
  const said = {
    file: `The file is too large for a link (${size}), so the link names the site and will show its current file.`,
    site: `The file is too large for a link (${size}), and no site is named: the link contains only the question.`,
    question: "The question is too long for a link.",
  };
  at("linked").hidden = false;
  if (fragment === null) {
    at("link-text").value = "";
    at("link-said").textContent = said[left];
    return;
  }
  history.replaceState(null, "", fragment);
  at("link-text").value = location.href;
  at("link-text").focus();
  at("link-text").select();
  // Without TLS there is no clipboard access; the selected link can be copied by hand.
  const copied = await navigator.clipboard?.writeText(location.href).then(
    () => true,
    () => false,
  );
  at("link-said").textContent = [copied ? "Copied." : "", left === null ? "" : said[left]].join(" ").trim();
}

/** Show the state in the address, or the example. */
async function follow() {
  const wanted = await stateOf(location.hash);
  await restore(wanted ?? EXAMPLE);
  if (wanted === null && isLink(location.hash)) say("question", "The link cannot be read; this is an example.", true);
}

// --- events ---

function test() {
  return ask().then(() => {
    const { top } = at("verdicts").getBoundingClientRect();
    if (answered !== null && top > window.innerHeight * 0.8) at("verdicts").scrollIntoView();
  });
}

function changed() {
  at("stale").hidden = at("table").childElementCount === 0;
  at("linked").hidden = true;
}

at("fetching").addEventListener("submit", (event) => {
  event.preventDefault();
  fetchFile();
});
at("question").addEventListener("submit", (event) => {
  event.preventDefault();
  test();
});
at("again").addEventListener("click", () => {
  at("test").focus({ preventScroll: true });
  test();
});
at("link").addEventListener("click", link);
for (const radio of sides) radio.addEventListener("change", showSide);
for (const field of document.querySelectorAll("#robots, #other, #urls, #agents, input[name=dialect]")) {
  field.addEventListener("input", changed);
}
at("reader").addEventListener("change", () => {
  at("linked").hidden = true;
});
fields.other.addEventListener("input", () => versions.site?.file && versions.leave());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  test();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  // As a link, it would replace the state in the address.
  event.preventDefault();
  at("verdicts").focus();
});
window.addEventListener("hashchange", () => isLink(location.hash) && follow());

await follow();
