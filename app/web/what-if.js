// "What if it answers 503?": what each crawler would do, from the first such fetch on. Never the real answer.

import { judge, ServiceError } from "./api.js";
import { listed, nameOf } from "./crawlers.js";
import { roughly } from "./labels.js";
import { el, plain, quoted } from "./text.js";

const PAGE = "<!doctype html>\n<title>Not found</title>\n";

/** Name -> what the site does, and the outcome to simulate; the text takes the place of the copy that was cached. */
const OUTCOMES = {
  503: { said: "answers 503", outcome: { status: 503 } },
  404: { said: "answers 404", outcome: { status: 404 } },
  page: { said: "answers with a web page", outcome: { status: 200 }, text: PAGE },
  timeout: { said: "does not answer", outcome: { cause: "timeout" } },
};

const DOES = { allow: "may fetch this URL", disallow: "may not fetch this URL", defer: "fetches nothing, and asks again" };

/** Crawlers of one question: a simulation has limits of its own. */
const MOST_AGENTS = 40;

export class WhatIf {
  /** `question()` is what to ask: {text, url, agents}, the text of the file with a URL and crawlers. */
  constructor(box, buttons, question) {
    this._box = box;
    this._question = question;
    this._asking = null;
    buttons.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-if]");
      if (button !== null) this._ask(button.dataset.if);
    });
    box.addEventListener("click", (event) => {
      if (event.target.closest("button") !== null) this.clear();
    });
  }

  /** Show nothing: the question has changed. */
  clear() {
    this._asking?.abort();
    this._box.replaceChildren();
    this._box.hidden = true;
  }

  async _ask(name) {
    this.clear();
    const { text, url, agents } = this._question();
    const { said, outcome, text: served } = OUTCOMES[name];
    const { signal } = (this._asking = new AbortController());
    try {
      const asked = { urls: [url], agents: agents.slice(0, MOST_AGENTS), explain: false };
      const { rows } = await judge({ robots: served ?? text, outcome, ...asked }, signal);
      this._show(said, url, rows.map((row, at) => ({ ...row, asked: asked.agents[at] })).filter(({ problem }) => problem === undefined));
    } catch (error) {
      if (error instanceof ServiceError) this._show(said, url, [], error.message);
      else if (error.name !== "AbortError") throw error;
    }
  }

  _show(said, url, rows, trouble = "") {
    const alike = Map.groupBy(rows, ({ timeline }) => timeline.map(({ after, verdict }) => `${after} ${verdict}`).join());
    const parts = [...alike.values()].flatMap((some) => [
      el("dt", {}, quoted(listed(some.map(nameOf)), 200)),
      el("dd", {}, turnsOf(some[0].timeline).join("; "), "."),
    ]);
    const title = plain(`Not the real answer: if ${new URL(url).host} ${said}`);
    const close = el("button", { type: "button", class: "link" }, "Close");
    this._box.replaceChildren(el("p", {}, el("strong", {}, title), " ", close), el("p", {}, quoted(trouble)), el("dl", { tabindex: 0, "aria-label": title }, parts));
    this._box.hidden = false;
  }
}

/** The turns of a timeline in words, those that change nothing left out. */
function turnsOf(timeline) {
  const turns = timeline.filter(({ verdict }, at) => verdict !== timeline[at - 1]?.verdict);
  const when = (after) => (after === 0 ? "at first " : `after ${roughly(after)} `);
  return turns.map(({ after, verdict }) => (turns.length > 1 ? when(after) : "") + (DOES[verdict] ?? verdict));
}
