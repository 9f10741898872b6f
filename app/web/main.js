// The page: its parts, its state, and the events that concern several of them.

import { Answer } from "./answer.js";
import { byRecipe } from "./recipes.js";
import { copy, showLink } from "./links.js";
import { Draft, isExample } from "./draft.js";
import { EarlierVersion } from "./earlier-version.js";
import { EXAMPLE } from "./example.js";
import { FileField } from "./file-field.js";
import { FileSource } from "./file-source.js";
import { isLink, stateOf } from "./state.js";
import { onView, setView, view } from "./view.js";
import { PageUndo } from "./page-undo.js";
import { Question } from "./question.js";
import { ServiceError } from "./api.js";
import { save } from "./export.js";
import { say } from "./said.js";
import { SiteFetch } from "./site-fetch.js";
import { takeAdvice, tellAdvice } from "./advice.js";
import { takeDrops } from "./file-drop.js";
import { TestRun } from "./test-run.js";

const at = (id) => document.getElementById(id);

const source = new FileSource(at("site"), at("site-said"));
const edits = new PageUndo(state, takeBack);
const robots = new FileField(at("robots"), edits);
const other = new FileField(at("other"), edits);
const question = new Question(() => run.changed(), () => robots.value, () => source.origin ?? site.origin);
const answer = new Answer([robots, other], takeAdvice, (urls) => {
  question.takeUrls(urls);
  run.test();
});
const earlier = new EarlierVersion({ robots, other, source, ask: () => run.ask() });
const draft = new Draft(state);
const run = new TestRun({ question, answer, robots, other, source, earlier, draft });
const site = new SiteFetch({ question, answer, robots, source, earlier, run, replacing, state });

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
    fetched: earlier.site,
    earlier: earlier.link,
  };
}

/** The state that shows nothing but the chosen verdict. */
function chosenState() {
  const { urls, agents, column } = answer.chosenCell;
  return { ...state(), urls, agents, chosen: [0, column] };
}

async function restore(wanted) {
  earlier.drop();
  answer.clear();
  source.forget();
  source.site = wanted.site;
  robots.value = wanted.robots ?? "";
  other.value = wanted.other;
  question.text = wanted;
  if (isExample(wanted)) source.say("An example: the robots.txt of a shop");
  answer.side = wanted.side;
  answer.chosen = wanted.chosen;
  setView(wanted.view);
  if (wanted.robots === null && wanted.site !== "") {
    await site.fetch({ byLink: true });
    if (wanted.earlier !== null && earlier.site !== null) await earlier.find(wanted.earlier);
    return;
  }
  // A link alone makes the service fetch no more than the one file that it names.
  if (wanted.view === "service") {
    answer.say("Press Test to see what our crawlers do now.");
    open("ask-more");
    return;
  }
  if (wanted.fetched !== null) earlier.offer(wanted.fetched);
  if (wanted.fetched?.file) source.fetched(wanted.fetched.url, wanted.fetched.cut);
  // The text of the version comes from the service: a link is untrusted, and could show any text as one of the site.
  if (wanted.earlier === null || !(await earlier.find(wanted.earlier))) await run.ask();
}

/** Offer to bring back what the fields hold, or the state `before`, and say what replaces it. */
function replacing(what, before = state(), isKept = !isExample({ ...before, site: "" })) {
  at("back").hidden = !isKept;
  at("back-said").textContent = what;
  at("bring-back").onclick = () => {
    if (!edits.undoTo(before)) takeBack(before);
    shownFile().field.focus();
  };
}

/** Show the page as it was `before`. */
function takeBack(before) {
  const isInFile = [robots.field, other.field].includes(document.activeElement);
  at("back").hidden = true;
  restore(before);
  if (isInFile) shownFile().field.focus({ preventScroll: true });
}

/** Show what the user has typed at this address, the state in the address, or the example. */
async function follow(before = draft.kept) {
  at("back").hidden = true;
  if (before?.address === location.hash) return restore(before.state);
  const wanted = await stateOf(location.hash);
  if (wanted !== null && before !== null) replacing("The link takes the place of what you had typed.", before.state);
  await restore(wanted ?? before?.state ?? EXAMPLE);
  const shown = before === null ? "an example" : "what you had typed";
  if (wanted === null && isLink(location.hash)) say("question", `The link cannot be read; this is ${shown}.`, true);
  return undefined;
}

/** Forget what the user has typed, and begin with the example; it can be brought back until the page is left. */
async function startAnew() {
  const before = state();
  draft.clear();
  history.replaceState(null, "", location.pathname + location.search);
  await restore(EXAMPLE);
  draft.clear();
  replacing("Nothing of what you had typed is kept in this browser.", before);
}

/** Change a second version by a recipe, so that the table compares; one undo takes all of it back. */
async function cook(recipe) {
  const before = state();
  try {
    const { text, what, shown } = await byRecipe(recipe, other.value || robots.value, new AbortController().signal);
    if (text === null) return tellAdvice(`${what}.`);
    replacing(`${what}.`, before, true);
    question.addCrawlers(shown);
    compare(text, before);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    say("question", error.message, true);
  }
  return undefined;
}

/** Compare the file with another text; with none, no longer. Undo restores the state `before`, if there is one. */
function compare(text, before = null) {
  setView("text");
  answer.side = text === "" ? 0 : 1;
  other.replace(text, "", before);
}

function shownFile() {
  return [robots, other][answer.side];
}

/** Open or close a part of the question. */
function open(id, isOpen = true) {
  at(id).hidden = !isOpen;
  document.querySelector(`[data-opens=${id}]`).setAttribute("aria-expanded", String(isOpen));
  at("actions").hidden = document.querySelector(".ask:not([hidden])") === null;
  if (isOpen) at(id).querySelector("textarea")?.focus();
}

// --- events ---

at("fetching").addEventListener("submit", (event) => {
  event.preventDefault();
  site.fetch();
});
at("question").addEventListener("submit", (event) => {
  event.preventDefault();
  run.test();
});
at("again").addEventListener("click", () => {
  at("verdicts").focus({ preventScroll: true });
  run.test();
});
at("link").addEventListener("click", () => showLink(state(), true));
at("link-cell").addEventListener("click", () => showLink(chosenState(), false));
at("download").addEventListener("click", () => save(answer.export(at("format").value)));
at("download-blocked").addEventListener("click", () => save(answer.exportBlocked()));
at("copy").addEventListener("click", async () => {
  const copied = await copy(answer.export(at("format").value).text);
  at("exported-said").textContent = copied ? "Copied." : "This browser does not permit copying here: download the file.";
});
onView(() => {
  at("linked").hidden = true;
  answer.outdate("Asking …");
  run.ask();
});
for (const file of [robots, other]) {
  file.field.addEventListener("input", () => {
    setView("text");
    // An undo may be of the version that is not shown.
    if (file === robots || other.value !== "") answer.side = Number(file === other);
    tellAdvice();
    run.changed(file.isReplaced);
  });
}
takeDrops(at("listing"), (text) => shownFile().replace(text, undefined, state()), (why) => say(shownFile().field.id, why, true));
at("editor").addEventListener("keydown", (event) => {
  if (event.target.closest("textarea") === null) edits.takeKey(event);
});
at("compare").addEventListener("click", () => {
  compare(other.value === "" ? robots.value : "");
  shownFile().field.focus();
});
for (const button of document.querySelectorAll("[data-recipe]")) {
  button.addEventListener("click", () => cook(button.dataset.recipe));
}
for (const chip of document.querySelectorAll("[data-opens]")) {
  chip.addEventListener("click", () => open(chip.dataset.opens, chip.getAttribute("aria-expanded") !== "true"));
}
robots.field.addEventListener("input", () => source.edited(robots.isReplaced));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  run.test();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  // As a link, it would replace the state in the address.
  event.preventDefault();
  at("verdicts").focus();
});
window.addEventListener("beforeprint", () => answer.drawAll());
window.addEventListener("afterprint", () => answer.release());
at("clear").addEventListener("click", startAnew);
window.addEventListener("hashchange", () => {
  if (isLink(location.hash)) follow(isExample(state()) ? null : { address: null, state: state() });
});

await follow();
