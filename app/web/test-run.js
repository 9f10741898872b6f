// Puts the question, live or when the user asks for it, and has the answer shown.

import { askService, testFile } from "./chunks.js";
import { Live } from "./live.js";
import { Progress } from "./progress.js";
import { say } from "./said.js";
import { ServiceError } from "./api.js";
import { ServiceView } from "./service-view.js";
import { view } from "./view.js";

const MOST_LIVE = 2000;

const at = (id) => document.getElementById(id);

export class TestRun {
  /** The parts of the page: `question`, `answer`, `editor`, `source`, `earlier` and `draft`. */
  constructor(parts) {
    this._parts = parts;
    this._asking = null;
    this._live = new Live(() => this.ask({ quietly: true }));
    this._progress = new Progress(at("progress"), () => this._cancel());
  }

  /** Send the question in the fields and show the answer; `quietly`, the page does not scroll. True if it is answered. */
  async ask({ quietly = false } = {}) {
    const { question, answer, earlier } = this._parts;
    this.stop();
    const mine = (this._asking = new AbortController());
    at("verdicts").removeAttribute("aria-busy");
    if (earlier.chosen === null) earlier.hideSummary();
    this._parts.draft.changed();
    this.quiet();
    if (!question.isComplete()) {
      answer.outdate("The question is incomplete.");
      return true;
    }
    at("verdicts").setAttribute("aria-busy", "true");
    try {
      const show = await (view() === "service" ? this._askService(mine.signal) : this._askText(mine.signal));
      if (mine.signal.aborted) return true;
      show();
      this._live.resume();
      return true;
    } catch (error) {
      if (error instanceof ServiceError) this._complain(error, quietly);
      else if (error.name !== "AbortError") throw error;
      return error.name === "AbortError";
    } finally {
      if (this._asking === mine) {
        at("verdicts").removeAttribute("aria-busy");
        this._progress.hide();
      }
    }
  }

  /** Test, and bring the verdicts into view if they are not. */
  async test() {
    await this.ask();
    const { top } = at("verdicts").getBoundingClientRect();
    if (this._parts.answer.isCurrent && (top < 0 || top > window.innerHeight * 0.8)) at("sentence").scrollIntoView();
  }

  /** The question has changed: mark the answer as out of date, and ask again; `atOnce` without a pause. */
  changed(atOnce = false) {
    const { question, answer } = this._parts;
    this.stop();
    this._asking = null;
    this._progress.hide();
    at("verdicts").removeAttribute("aria-busy");
    at("linked").hidden = true;
    const { urls, agents, dialects } = question.asked;
    const verdicts = urls.length * agents.length * Math.max(dialects.length, 1);
    if (view() === "text" && verdicts <= MOST_LIVE && this._live.changed(atOnce)) at("verdicts").setAttribute("aria-busy", "true");
    else answer.outdate("The question has changed.");
  }

  /** Ask nothing more. */
  stop() {
    this._live.cancel();
    this._asking?.abort();
  }

  /** Clear all error messages. */
  quiet() {
    for (const name of ["robots", "other", "question"]) say(name, "");
    this._parts.question.quiet();
  }

  /** Ask what the text in the field says; returns what shows the answer. */
  async _askText(signal) {
    const { question, answer, editor, source, earlier } = this._parts;
    const [robots, other] = editor.texts;
    const files = [{ text: robots, truncated: source.isCut }];
    if (other !== "") files.push({ text: other, truncated: earlier.since?.truncated ?? false });
    const since = earlier.since;
    const read = await testFile(files[0], question.asked, signal, (done, all) => this._progress.show(done, all * files.length));
    const found = [{ ...files[0], rows: read.rows, warnings: read.warnings }];
    if (files.length > 1 && read.rows.length > 0) {
      const more = (done, all) => this._progress.show(all + done, 2 * all);
      const second = await testFile(files[1], read, signal, more).catch((error) => blame(error, "other"));
      found.push({ ...files[1], rows: second.rows, warnings: second.warnings });
    }
    return () => {
      question.tell({ ...read.unread, misspelt: misspeltOf(read) });
      answer.show(read, found, since, source.origin);
    };
  }

  /** Ask what the service decides now; returns what shows the answer. */
  async _askService(signal) {
    const { question, answer } = this._parts;
    const read = await askService(question.asked, signal, (done, all) => this._progress.show(done, all));
    const service = await ServiceView.open(signal, () => this.ask());
    return () => {
      question.tell({ ...read.unread, misspelt: misspeltOf(read) });
      answer.showService(read, service);
    };
  }

  _cancel() {
    this._asking?.abort();
    this._parts.answer.outdate("The test was cancelled. These results are out of date.");
    at("verdicts").focus({ preventScroll: true });
  }

  /** Show why a test failed, in view unless `quietly`, and mark the results of the previous test as out of date. */
  _complain({ message, parameter, unread }, quietly) {
    if (unread !== undefined) this._parts.question.tell(unread);
    const place = parameter === "robots" || parameter === "other" ? parameter : "question";
    say(place, message, true);
    this._parts.answer.outdate("The test failed. These results are out of date.");
    if (!quietly) at(`${place}-said`).scrollIntoView({ block: "nearest" });
  }
}

/** The crawlers of a question that the service takes for misspelt: {line, detail}. */
function misspeltOf({ agents, dialects, rows }) {
  const width = Math.max(dialects.length, 1);
  return agents.flatMap((agent, at) => {
    const note = rows[0]?.[at * width].notes?.find(({ code }) => code === "agent-misspelt");
    return note === undefined ? [] : [{ ...agent, detail: note.message }];
  });
}

function blame(error, parameter) {
  throw error instanceof ServiceError ? new ServiceError(error.message, parameter) : error;
}
