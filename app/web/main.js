// The page: its parts, its state, and the events that concern several of them.

import { Answer } from "./answer.js";
import { byRecipe } from "./recipes.js";
import { copy, showLink } from "./links.js";
import { Draft, isExample } from "./draft.js";
import { EarlierVersion } from "./earlier-version.js";
import { EXAMPLE } from "./example.js";
import { FileEditor } from "./file-editor.js";
import { FileSource } from "./file-source.js";
import { isLink, stateOf } from "./state.js";
import { onView, setView, view } from "./view.js";
import { Question } from "./question.js";
import { ServiceError } from "./api.js";
import { save } from "./export.js";
import { say } from "./said.js";
import { SiteFetch } from "./site-fetch.js";
import { takeAdvice, tellAdvice, tellUndo } from "./advice.js";
import { takeDrops } from "./file-drop.js";
import { TestRun } from "./test-run.js";

const at = (id) => document.getElementById(id);

/** Milliseconds after which the editor is loaded even if there is no table yet. */
const LATEST = 4000;

const source = new FileSource(at("site"), at("site-said"));
const editor = new FileEditor(at("robots"), {
  changed(isReplaced) {
    edited();
    if (editor.side === 0) source.edited(isReplaced);
    run.changed(isReplaced);
  },
  undone() {
    edited();
    run.changed();
  },
  turned: () => answer.turned(),
  pick: (line) => answer.pick(line),
  fix: (line, warning) => takeAdvice(editor, line, warning),
  page: { now: pageNow, restore: takeBack },
  source,
});
const question = new Question(asked, () => editor.texts[0], () => source.origin ?? site.origin);
const answer = new Answer(editor, (urls) => {
  question.takeUrls(urls);
  run.test();
});
const earlier = new EarlierVersion({ editor, source, state: pageNow, ask: () => run.ask() });
const draft = new Draft(state);
const run = new TestRun({ question, answer, editor, source, earlier, draft });
const site = new SiteFetch({ question, answer, editor, source, earlier, run, replacing, state: pageNow });

// --- state ---

function state() {
  const [robots, other] = editor.texts;
  return {
    site: source.site,
    robots,
    other,
    ...question.text,
    chosen: answer.chosen,
    side: editor.side,
    view: view(),
    fetched: earlier.site,
    earlier: earlier.link,
  };
}

/** The state, and what is known of the file: more than a link may say. */
function pageNow() {
  return { ...state(), source: source.now() };
}

/** The state that shows nothing but the chosen verdict. */
function chosenState() {
  const { urls, agents, column } = answer.chosenCell;
  return { ...state(), urls, agents, chosen: [0, column] };
}

/** Show a state; undo brings the page back as it was `before`. */
async function restore(wanted, before = null) {
  earlier.drop();
  answer.clear();
  source.forget();
  source.site = wanted.site;
  editor.put([wanted.robots ?? "", wanted.other], wanted.side, before);
  question.text = wanted;
  if (isExample(wanted)) source.say("An example: the robots.txt of a shop");
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
  if (wanted.source !== undefined) source.restore(wanted.source);
  else if (wanted.fetched?.file) source.fetched(wanted.fetched.url, wanted.fetched.cut);
  // The text of the version comes from the service: a link is untrusted, and could show any text as one of the site.
  if (wanted.earlier === null || !(await earlier.find(wanted.earlier))) await run.ask();
}

/** Offer to bring back what the fields hold, or the state `before`, and say what replaces it. */
function replacing(what, before, isKept = !isExample({ ...before, site: "" })) {
  at("back").hidden = !isKept;
  at("back-said").textContent = what;
  at("bring-back").onclick = () => {
    if (!editor.undoTo(before)) takeBack(before);
    editor.focus();
  };
}

/** Show the page as it was `before`. */
function takeBack(before) {
  const { isFocused } = editor;
  at("back").hidden = true;
  restore(before);
  if (isFocused) editor.focus();
}

/** Show what the user has typed at this address, the state in the address, or the example. */
async function follow(before = draft.kept) {
  at("back").hidden = true;
  if (before?.address === location.hash) return restore(before.state);
  const typed = before === null || isExample(before.state) ? null : before.state;
  const wanted = await stateOf(location.hash);
  if (wanted !== null && typed !== null) replacing("The link takes the place of what you had typed.", typed);
  await restore(wanted ?? typed ?? EXAMPLE, before?.state ?? null);
  const shown = typed === null ? "an example" : "what you had typed";
  if (wanted === null && isLink(location.hash)) say("question", `The link cannot be read; this is ${shown}.`, true);
  return undefined;
}

/** Forget what the user has typed, and begin with the example; it can be brought back until the page is left. */
async function startAnew() {
  const before = pageNow();
  draft.clear();
  history.replaceState(null, "", location.pathname + location.search);
  await restore(EXAMPLE, before);
  draft.clear();
  replacing("Nothing of what you had typed is kept in this browser.", before);
}

/** Change a second version by a recipe, so that the table compares; one undo takes all of it back. */
async function cook(recipe) {
  const before = pageNow();
  try {
    const { text, what, shown } = await byRecipe(recipe, before.other || before.robots, new AbortController().signal);
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

/** Compare the file with another text; with none, no longer. Undo restores the page as `before`, if that is given. */
function compare(text, before = null) {
  editor.put([undefined, text], text === "" ? 0 : 1, before);
  edited();
  run.changed(true);
}

/** The question has changed. */
function asked() {
  draft.changed();
  run.changed();
}

/** The text of a version has changed. */
function edited() {
  setView("text");
  editor.showCopy(null);
  tellAdvice();
  draft.changed();
  earlier.edited();
}

/** Put a file that was dropped in the place of the version that is shown. */
function take(text) {
  const { side } = editor;
  editor.put(side === 0 ? [text] : [undefined, text], side, pageNow());
  edited();
  if (side === 0) source.edited(true);
  run.changed(true);
  tellUndo(editor, "The text was replaced.");
}

/** Open or close a part of the question. */
function open(id, isOpen = true) {
  at(id).hidden = !isOpen;
  document.querySelector(`[data-opens=${id}]`).setAttribute("aria-expanded", String(isOpen));
  at("actions").hidden = document.querySelector(".ask:not([hidden])") === null;
  if (isOpen) at(id).querySelector("textarea, .cm-content")?.focus();
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
  editor.showCopy(null);
  run.ask();
});
takeDrops(at("listing"), take, (why) => say(editor.side === 0 ? "robots" : "other", why, true));
at("listing").addEventListener("keydown", (event) => {
  const isElsewhere = event.defaultPrevented || event.target.closest("input, textarea") !== null;
  if (!isElsewhere && editor.takeKey(event)) event.preventDefault();
});
at("compare").addEventListener("click", () => {
  const [robots, other] = editor.texts;
  compare(other === "" ? robots : "");
  editor.focus();
});
for (const button of document.querySelectorAll("[data-recipe]")) {
  button.addEventListener("click", () => cook(button.dataset.recipe));
}
for (const chip of document.querySelectorAll("[data-opens]")) {
  chip.addEventListener("click", () => open(chip.dataset.opens, chip.getAttribute("aria-expanded") !== "true"));
}
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
  if (isLink(location.hash)) follow({ address: null, state: pageNow() });
});

const begun = follow();
await Promise.race([begun, new Promise((done) => setTimeout(done, LATEST))]);
const cm = await import("./codemirror.js").catch(() => null);
const boxes = [editor, ...question.boxes];
await Promise.all(boxes.map((box) => (cm === null ? box.stay() : box.begin(cm))));
if (cm === null) {
  at("editor-keys").textContent = "The editor could not be loaded, so no line is marked here. Load the page again to try once more.";
  at("editor-keys").className = "hint";
}
await begun;
