// The page: what is asked, what is answered, and which of the answers is being looked at.

import { held, judge, Trouble, version } from "./api.js";
import { Changes } from "./changes.js";
import { Earlier, period } from "./earlier.js";
import { EXAMPLE } from "./example.js";
import { explanation } from "./why.js";
import { facts, without } from "./fetched.js";
import { FileField } from "./file-field.js";
import { fragmentOf, isLink, stateOf } from "./state.js";
import { instant } from "./words.js";
import { Gains } from "./gains.js";
import { Listing } from "./listing.js";
import { Numbered } from "./numbered.js";
import { Pace } from "./pace.js";
import { Table } from "./table.js";
import { count, el, linesOf, plain } from "./text.js";

const MOST_UNREAD = 25;

const at = (id) => document.getElementById(id);

const fields = { site: at("site"), robots: at("robots"), other: at("other") };
const robots = new FileField(fields.robots);
const other = new FileField(fields.other);
const urls = new Numbered(at("urls"), at("urls-said"));
const agents = new Numbered(at("agents"), at("agents-said"));
const ticks = [...document.querySelectorAll("input[name=dialect]")];
const sides = [...document.querySelectorAll("input[name=side]")];
const table = new Table(at("table"), choose);
const listing = new Listing(at("lines"), at("listing-facts"), at("warnings"));
const pace = new Pace(at("pace-body"));
const changes = new Changes(at("diff"), at("changes-facts"));
const earlier = new Earlier(at("earlier"), lookAt);
const gains = new Gains(at("gains"), at("reader"));

/** What the last answer was about: per version its text, its warnings, and its rows, an array for each page. */
let answered = null;
let chosen = [0, 0];
let asking = null;
let fetching = null;
let looking = null;

// --- what is asked ---

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
    fetched: earlier.site,
    earlier: earlier.chosen && { id: earlier.chosen.id, from: earlier.chosen.from, reader: at("reader").value },
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
    if (wanted.earlier !== null && earlier.site !== null) await earlier.find(wanted.earlier);
    return;
  }
  if (wanted.fetched !== null) earlier.offer(wanted.fetched);
  // The version is looked up and not taken from the link, in which anybody may call any text what a site once served.
  if (wanted.earlier === null || !(await earlier.find(wanted.earlier))) await ask();
}

function side() {
  return Number(sides.find(({ checked }) => checked).value);
}

// --- asking ---

/** Ask about what the fields hold, and show the answer. */
async function ask() {
  asking?.abort();
  const mine = (asking = new AbortController());
  at("verdicts").removeAttribute("aria-busy");
  const question = { urls: urls.asked, agents: agents.asked, dialects: state().dialects };
  const versions = [robots.value, other.value].filter((text, index) => index === 0 || text !== "");
  const since = earlier.site?.file ? earlier.chosen : null;
  if (earlier.chosen === null) gains.hide();
  quiet();
  if (question.urls.length === 0) urls.tell([{ line: null, detail: "Name at least one page." }]);
  if (question.agents.length === 0) agents.tell([{ line: null, detail: "Name at least one crawler." }]);
  if (question.urls.length === 0 || question.agents.length === 0) return;
  at("verdicts").setAttribute("aria-busy", "true");
  try {
    const read = await readable(question, versions[0], mine.signal);
    const answers = [read.answer];
    if (versions.length > 1 && read.answer !== null) {
      answers.push(await judge(wire(read, versions[1]), mine.signal).catch((error) => blame(error, "other")));
    }
    if (mine.signal.aborted) return;
    show(read, versions, answers, since);
  } catch (error) {
    if (error instanceof Trouble) complain(error);
    else if (error.name !== "AbortError") throw error;
  } finally {
    if (asking === mine) at("verdicts").removeAttribute("aria-busy");
  }
}

/**
 * The answer about those lines that can be read, and what is wrong with the others. The service names the first line that
 * it cannot read, so it is asked again without it.
 */
async function readable(question, file, signal) {
  const unread = { urls: [], agents: [] };
  for (;;) {
    if (question.urls.length === 0 || question.agents.length === 0) return { ...question, unread, answer: null };
    try {
      return { ...question, unread, answer: await judge(wire(question, file), signal) };
    } catch (error) {
      const place = /^(urls|agents)\[(\d+)\]$/.exec(error.parameter ?? "");
      if (!(error instanceof Trouble) || place === null) throw error;
      const [, name, index] = place;
      const [line] = question[name].splice(Number(index), 1);
      unread[name].push({ ...line, detail: error.message });
      if (unread[name].length > MOST_UNREAD) {
        tellUnread(unread);
        throw new Trouble(`More than ${MOST_UNREAD} lines cannot be read; the first of them are marked.`);
      }
    }
  }
}

function wire({ urls: pages, agents: names, dialects }, file) {
  return { robots: file, urls: pages.map(({ text }) => text), agents: names.map(({ text }) => text), dialects };
}

function blame(error, parameter) {
  throw error instanceof Trouble ? new Trouble(error.message, parameter) : error;
}

function complain({ message, parameter }) {
  const place = { robots: "robots", other: "other", url: "site" }[parameter] ?? "question";
  say(place, message, true);
  at("summary").textContent = "There is no answer.";
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
    earlier.offer({ url: fields.site.value, at: file.robots.fetched_at, file: file.text !== null });
    if (file.text === null) return say("site", without(file.robots), true);
    robots.value = file.text;
    say("site", facts(file.robots));
    if (urls.value === EXAMPLE.urls || urls.asked.length === 0) urls.value = fields.site.value;
    return await ask();
  } catch (error) {
    if (error instanceof Trouble) return say("site", error.message, true);
    if (error.name !== "AbortError") throw error;
    return undefined;
  }
}

// --- what it was before ---

/** Show an earlier version of what was fetched: beside the file, or in its place where there is none; true once it is. */
async function lookAt(wanted) {
  looking?.abort();
  const mine = (looking = new AbortController());
  const { site } = earlier;
  at("linked").hidden = true;
  earlier.say("Fetching …");
  try {
    const { text } = await version(site.url, wanted.id, mine.signal);
    if (mine.signal.aborted) return false;
    earlier.mark(wanted);
    const beside = site.file ? other : robots;
    beside.value = text ?? "";
    if (site.file) at("comparing").open = text !== null;
    const told = gains.show(site, wanted);
    await Promise.all([ask(), told]);
    if (mine.signal.aborted) return false;
    earlier.say(...seen(text), " ", toChanges());
    return true;
  } catch (error) {
    if (error instanceof Trouble) earlier.complain(error.message);
    else if (error.name !== "AbortError") throw error;
    return false;
  }
}

function seen(text) {
  const when = period(earlier.chosen);
  if (!earlier.site.file) return [`The file is shown as it was, ${when}.`];
  if (text === null) return [`There was no file to compare line by line, ${when}.`];
  return [`The second version is the file as it was, ${when}.`];
}

function toChanges() {
  const button = el("button", { type: "button", class: "to-line" }, "See what changed");
  button.addEventListener("click", () => {
    const place = at("changes").hidden || at("because").hidden ? at("gains") : at("changes");
    place.focus();
    place.scrollIntoView();
  });
  return button;
}

/** Leave the site whose earlier versions are offered. */
function drop() {
  looking?.abort();
  if (earlier.chosen !== null && earlier.site.file) other.value = "";
  earlier.forget();
  gains.hide();
}

// --- what is answered ---

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

/** The lines of the question as the table has them: those that were answered, and the others in their places. */
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

/** Show the version that is to be explained. */
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
    file: `The file is too large to be in a link (${size}), so the link names the site: it shows the file as it is there then.`,
    site: `The file is too large to be in a link (${size}), and no site is named to fetch it from: the link holds the question alone.`,
    question: "The question is too long to be in a link.",
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
  // A page that did not come over TLS has no clipboard; the link is selected, ready to be copied by hand.
  const copied = await navigator.clipboard?.writeText(location.href).then(
    () => true,
    () => false,
  );
  at("link-said").textContent = [copied ? "Copied." : "", left === null ? "" : said[left]].join(" ").trim();
}

/** Show what the address holds, or else the example. */
async function follow() {
  const wanted = await stateOf(location.hash);
  await restore(wanted ?? EXAMPLE);
  if (wanted === null && isLink(location.hash)) say("question", "The link cannot be read: this is an example.", true);
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
fields.other.addEventListener("input", () => earlier.site?.file && earlier.leave());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  test();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  // Followed as a link, it would take the place of the state in the address.
  event.preventDefault();
  at("verdicts").focus();
});
window.addEventListener("hashchange", () => isLink(location.hash) && follow());

await follow();
