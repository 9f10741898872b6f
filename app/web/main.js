// The page: it puts the question, fetches files, and keeps the state.

import { Answer } from "./answer.js";
import { askService, testFile } from "./chunks.js";
import { candidates, lacksHttps } from "./bare-host.js";
import { backoffs, hasKey, held, refresh, ServiceError, version } from "./api.js";
import { copy, showLink } from "./links.js";
import { DiffSummary } from "./diff-summary.js";
import { EXAMPLE } from "./example.js";
import { facts, without } from "./fetch-facts.js";
import { FileField } from "./file-field.js";
import { FileSource } from "./file-source.js";
import { isLink, stateOf } from "./state.js";
import { Live } from "./live.js";
import { Progress } from "./progress.js";
import { Question } from "./question.js";
import { save } from "./export.js";
import { ServiceView } from "./service-view.js";
import { takeDrops } from "./file-drop.js";
import { VersionList, period } from "./versions.js";
import { el, plain } from "./text.js";

const MOST_LIVE = 2000;

const at = (id) => document.getElementById(id);

const fields = { robots: at("robots"), other: at("other") };
const source = new FileSource(at("site"), at("site-said"));
const robots = new FileField(fields.robots);
const other = new FileField(fields.other);
const question = new Question(() => changed(), () => robots.value, () => source.origin);
const progress = new Progress(at("progress"), () => cancel());
const views = [...document.querySelectorAll("input[name=view]")];
const answer = new Answer(takeAdvice);
const versions = new VersionList(at("versions"), lookAt);
const diffSummary = new DiffSummary(at("diff-summary"), at("reader"));
const live = new Live(() => ask({ quietly: true }));

let asking = null;
let fetching = null;
let looking = null;

// --- state ---

function state() {
  return {
    site: source.site,
    robots: robots.value,
    other: other.value,
    ...question.text,
    chosen: answer.chosen,
    side: answer.side,
    view: view(),
    fetched: versions.site,
    earlier: versions.chosen && { id: versions.chosen.id, from: versions.chosen.from, reader: at("reader").value },
  };
}

async function restore(wanted) {
  drop();
  answer.clear();
  source.forget();
  source.site = wanted.site;
  robots.value = wanted.robots ?? "";
  other.value = wanted.other;
  at("comparing").open = wanted.other !== "";
  question.text = wanted;
  answer.side = wanted.side;
  answer.chosen = wanted.chosen;
  setView(wanted.view);
  if ([...at("reader").options].some(({ value }) => value === wanted.earlier?.reader)) at("reader").value = wanted.earlier.reader;
  if (wanted.robots === null && wanted.site !== "") {
    await fetchFile();
    if (wanted.earlier !== null && versions.site !== null) await versions.find(wanted.earlier);
    return;
  }
  // A link alone makes the service fetch no more than the one file that it names.
  if (wanted.view === "service") {
    at("summary").textContent = "Press Test to see what the service decides now.";
    return;
  }
  if (wanted.fetched !== null) versions.offer(wanted.fetched);
  if (wanted.fetched?.file) source.fetched(wanted.fetched.url);
  // The text of the version comes from the service: a link is untrusted, and could show any text as one of the site.
  if (wanted.earlier === null || !(await versions.find(wanted.earlier))) await ask();
}

/** Whose decision is shown: "text", what the text in the field says, or "service", what the service decides now. */
function view() {
  return views.find(({ checked }) => checked).value;
}

function setView(name) {
  for (const radio of views) radio.checked = radio.value === name;
}

// --- asking ---

/** Send the question in the fields and show the answer; `quietly`, the page does not scroll. True if it is answered. */
async function ask({ quietly = false } = {}) {
  live.cancel();
  asking?.abort();
  const mine = (asking = new AbortController());
  at("verdicts").removeAttribute("aria-busy");
  if (versions.chosen === null) diffSummary.hide();
  quiet();
  if (!question.isComplete()) {
    answer.outdate("The question is incomplete.");
    return true;
  }
  at("verdicts").setAttribute("aria-busy", "true");
  try {
    const show = await (view() === "service" ? serviceAnswer(mine.signal) : textAnswer(mine.signal));
    if (mine.signal.aborted) return true;
    show();
    live.resume();
    return true;
  } catch (error) {
    if (error instanceof ServiceError) complain(error, quietly);
    else if (error.name !== "AbortError") throw error;
    return error.name === "AbortError";
  } finally {
    if (asking === mine) {
      at("verdicts").removeAttribute("aria-busy");
      progress.hide();
    }
  }
}

/** Ask what the text in the field says; returns what shows the answer. */
async function textAnswer(signal) {
  const texts = [robots.value, other.value].filter((text, index) => index === 0 || text !== "");
  const since = versions.site?.file ? versions.chosen : null;
  const read = await testFile(texts[0], question.asked, signal, (done, all) => progress.show(done, all * texts.length));
  const found = [{ text: texts[0], rows: read.rows, warnings: read.warnings }];
  if (texts.length > 1 && read.rows.length > 0) {
    const more = (done, all) => progress.show(all + done, 2 * all);
    const second = await testFile(texts[1], read, signal, more).catch((error) => blame(error, "other"));
    found.push({ text: texts[1], rows: second.rows, warnings: second.warnings });
  }
  return () => {
    question.tell(read.unread);
    answer.show(read, found, since, source.origin);
  };
}

/** Ask what the service decides now; returns what shows the answer. */
async function serviceAnswer(signal) {
  const read = await askService(question.asked, signal, (done, all) => progress.show(done, all));
  const service = await ServiceView.open(signal, () => ask());
  return () => {
    question.tell(read.unread);
    answer.showService(read, service);
  };
}

function cancel() {
  asking?.abort();
  answer.outdate("The test was cancelled. These results are out of date.");
  at("test").focus();
}

function blame(error, parameter) {
  throw error instanceof ServiceError ? new ServiceError(error.message, parameter) : error;
}

/** Show why a test failed, in view unless `quietly`, and mark what is left of the former one. */
function complain({ message, parameter, unread }, quietly) {
  if (unread !== undefined) question.tell(unread);
  const place = parameter === "robots" || parameter === "other" ? parameter : "question";
  say(place, message, true);
  answer.outdate("The test failed. These results are out of date.");
  if (!quietly) at(`${place}-said`).scrollIntoView({ block: "nearest" });
}

function quiet() {
  for (const name of ["robots", "other", "question"]) say(name, "");
  question.quiet();
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
  asking?.abort();
  live.cancel();
  const mine = (fetching = new AbortController());
  const { site } = source;
  drop();
  setView("text");
  at("refetch").hidden = true;
  at("linked").hidden = true;
  if (site === "") return source.say("Name a site, as in https://www.example.com/", true);
  let [url, byHttp] = candidates(site);
  source.site = url;
  source.say("Fetching …");
  answer.outdate("Fetching another file.");
  try {
    let file = await held(url, mine.signal);
    if (byHttp && lacksHttps(file.robots)) {
      const other = await held(byHttp, mine.signal);
      if (!lacksHttps(other.robots)) [url, file] = [(source.site = byHttp), other];
    }
    if (mine.signal.aborted) return undefined;
    versions.offer({ url, at: file.robots.fetched_at, file: file.text !== null });
    question.takeSite(url);
    offerRefetch(mine.signal);
    if (file.text === null) return withoutFile(without(file.robots));
    robots.value = file.text;
    source.fetched(url, facts(file.robots));
    return await ask();
  } catch (error) {
    if (error instanceof ServiceError) return withoutFile(error.message);
    if (error.name !== "AbortError") throw error;
    return undefined;
  }
}

/** Let operators have the file fetched again: what the service holds may be a day old. */
async function offerRefetch(signal) {
  const waits = await backoffs(signal).catch(() => null);
  // Without a key, the service asks for one if it is wanted.
  if (!signal.aborted) at("refetch").hidden = waits === null && hasKey();
}

async function refetch() {
  const { url } = versions.site;
  fetching?.abort();
  const mine = (fetching = new AbortController());
  source.say("Fetching …");
  answer.outdate("Fetching the file again.");
  try {
    await refresh(url, mine.signal);
    source.site = url;
    await fetchFile();
  } catch (error) {
    if (error instanceof ServiceError) source.say(error.message, true);
    else if (error.name !== "AbortError") throw error;
  }
}

/** Show why there is no file, and nothing of a former one. Text that the user has written is kept. */
function withoutFile(why) {
  quiet();
  answer.clear();
  source.forget();
  if (!robots.isTyped) robots.value = "";
  at("summary").textContent = "There is no text to test. See what crawlers are told: “as the service decides”.";
  source.say(robots.value === "" ? why : `${why} The text below is not of this site.`, true);
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
    setView("text");
    const beside = site.file ? other : robots;
    beside.value = text ?? "";
    if (site.file) at("comparing").open = text !== null;
    else source.fetched(site.url);
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

// --- advice ---

/** Write the advice on a line of a version into its field. */
function takeAdvice(side, line, written, instead) {
  const field = side === 0 ? robots : other;
  const before = field.value;
  const { scrollTop } = fields.robots;
  const applied = field.replaceLine(line, written, instead);
  fields.robots.scrollTop = scrollTop;
  at("lines").focus({ preventScroll: true });
  if (!applied) return tellAdvice("The text has changed since this test: test again.");
  const undo = el("button", { type: "button", class: "to-line" }, "Undo");
  undo.addEventListener("click", () => {
    field.replace(before);
    at("lines").focus({ preventScroll: true });
  });
  return tellAdvice(plain(`Line ${line} has changed: ${instead}`), " ", undo);
}

function tellAdvice(...parts) {
  at("advice-said").replaceChildren(...parts);
}

// --- the link ---

/** The state that shows nothing but the chosen verdict. */
function chosenState() {
  const { urls, agents, column } = answer.chosenCell;
  return { ...state(), urls, agents, chosen: [0, column] };
}

/** Show the state in the address, or the example. */
async function follow() {
  const wanted = await stateOf(location.hash);
  await restore(wanted ?? EXAMPLE);
  if (wanted === null && isLink(location.hash)) say("question", "The link cannot be read; this is an example.", true);
}

// --- events ---

async function test() {
  await ask();
  const { top } = at("verdicts").getBoundingClientRect();
  if (answer.isCurrent && top > window.innerHeight * 0.8) at("verdicts").scrollIntoView();
}

/** Mark the answer as out of date, and ask again; `atOnce` without a pause. */
function changed(atOnce = false) {
  live.cancel();
  asking?.abort();
  asking = null;
  progress.hide();
  at("verdicts").removeAttribute("aria-busy");
  at("linked").hidden = true;
  const { urls, agents, dialects } = question.asked;
  const verdicts = urls.length * agents.length * Math.max(dialects.length, 1);
  if (view() === "text" && verdicts <= MOST_LIVE && live.changed(atOnce)) at("verdicts").setAttribute("aria-busy", "true");
  else answer.outdate("The question has changed.");
}

async function copyExport() {
  const copied = await copy(answer.export(at("format").value).text);
  at("exported-said").textContent = copied ? "Copied." : "This browser does not permit copying here: download the file.";
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
at("link").addEventListener("click", () => showLink(state(), true));
at("link-cell").addEventListener("click", () => showLink(chosenState(), false));
at("download").addEventListener("click", () => save(answer.export(at("format").value)));
at("copy").addEventListener("click", copyExport);
at("refetch").addEventListener("click", refetch);
for (const radio of views) {
  radio.addEventListener("change", () => {
    at("linked").hidden = true;
    answer.outdate("Asking …");
    ask();
  });
}
for (const file of [robots, other]) {
  file.field.addEventListener("input", () => {
    setView("text");
    tellAdvice();
    changed(file.isReplaced);
  });
}
takeDrops(at("comparing"), (text) => other.replace(text), (why) => say("other", why, true));
takeDrops(document.querySelector(".file"), (text) => robots.replace(text), (why) => say("robots", why, true));
at("reader").addEventListener("change", () => {
  at("linked").hidden = true;
});
fields.robots.addEventListener("input", () => source.edited(robots.isReplaced));
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
