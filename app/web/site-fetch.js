// Fetches the file of a site into the field, and lets operators have it fetched again.

import { backoffs, hasKey, held, refresh, ServiceError } from "./api.js";
import { candidates, lacksHttps } from "./bare-host.js";
import { facts, without } from "./fetch-facts.js";
import { originOf } from "./file-source.js";
import { setView } from "./view.js";

/** Milliseconds after which the page says that a site is slow. */
const SLOW = 10_000;

const at = (id) => document.getElementById(id);

export class SiteFetch {
  /**
   * The parts of the page: `question`, `answer`, `editor`, `source`, `earlier`, the TestRun `run`, and
   * `replacing(what, before)`, which is called when a text of the user's was replaced, with the `state()` of the page before.
   */
  constructor(parts) {
    this._parts = parts;
    this._fetching = null;
    at("refetch").addEventListener("click", () => this._refetch());
  }

  /** The origin that the site field names, or null. */
  get origin() {
    return originOf(candidates(this._parts.source.site)[0]);
  }

  /**
   * Fetch the file of the site in the field, and test it; without a file, show what the service decides. That may fetch
   * other sites, so it takes more than a link.
   */
  async fetch({ byLink = false } = {}) {
    const { question, answer, editor, source, earlier, run, replacing, state } = this._parts;
    this._fetching?.abort();
    run.stop();
    const mine = (this._fetching = new AbortController());
    const { site } = source;
    if (site === "") return source.say("Name a site, as in https://www.example.com/", true);
    const before = state();
    // An earlier version is one of the former site's.
    const other = earlier.since === null ? editor.texts[1] : "";
    earlier.drop();
    setView("text");
    for (const id of ["refetch", "linked", "back"]) at(id).hidden = true;
    const [first] = candidates(site);
    source.site = first;
    const host = originOf(first)?.replace(/^https?:\/\//, "") ?? site;
    const done = this._wait(host);
    answer.outdate(`Asking ${host} …`);
    try {
      const { url, file } = await heldAt(site, mine.signal);
      if (mine.signal.aborted) return undefined;
      source.site = url;
      earlier.offer({ url, at: file.robots.fetched_at, file: file.text !== null, cut: file.robots.truncated });
      question.takeSite(url);
      this._offerRefetch(mine.signal);
      if (file.text === null) {
        this._without(without(file.robots), false, other, before);
        setView("service");
        if (byLink) return answer.say("Press Test to see what crawlers do without the file.");
        return await run.ask({ quietly: true });
      }
      if (!byLink) question.takeCrawlers(file.text);
      if (editor.texts[0] !== file.text) replacing("The file of the site takes the place of what was here.", before);
      editor.put([file.text, other], other === "" ? 0 : editor.side, before);
      source.fetched(url, file.robots.truncated, facts(file.robots));
      return await run.ask();
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      if (!(error instanceof ServiceError)) throw error;
      this._without(error.message, true, other, before);
      return answer.say("There is no file to test.");
    } finally {
      done();
    }
  }

  /** Say that the site is being asked, and after a while that it is slow; the function that is returned ends it. */
  _wait(host) {
    const { source } = this._parts;
    const { classList } = at("sentence").closest("section");
    classList.add("loading");
    source.say(`Asking ${host} …`);
    const timer = setTimeout(() => source.say(`${host} has not answered for 10 s. Waiting a little longer …`), SLOW);
    const { signal } = this._fetching;
    return () => {
      clearTimeout(timer);
      if (this._fetching.signal === signal) classList.remove("loading");
    };
  }

  /** Let operators have the file fetched again: what the service holds may be a day old. */
  async _offerRefetch(signal) {
    // Without a key, the service asks for one if it is wanted.
    const isRefused = hasKey() && (await backoffs(signal).catch(() => null)) === null;
    if (!signal.aborted) at("refetch").hidden = isRefused;
  }

  async _refetch() {
    const { answer, source, earlier } = this._parts;
    const { url } = earlier.site;
    this._fetching?.abort();
    const mine = (this._fetching = new AbortController());
    source.say("Fetching …");
    answer.outdate("Fetching the file again.");
    try {
      await refresh(url, mine.signal);
      source.site = url;
      await this.fetch();
    } catch (error) {
      if (error instanceof ServiceError) source.say(error.message, true);
      else if (error.name !== "AbortError") throw error;
    }
  }

  /**
   * Say why there is no file, and show nothing of a former one; undo restores the state `before`. Text that is typed is kept,
   * and `other` beside it.
   */
  _without(why, isWrong, other, before) {
    const { answer, editor, source, run } = this._parts;
    run.quiet();
    answer.clear();
    source.forget();
    const robots = editor.isTyped ? editor.texts[0] : "";
    editor.put([robots, other], other === "" ? 0 : editor.side, before);
    source.say(robots === "" ? why : `${why} · the text here is not of this site`, isWrong);
  }
}

/** The cached file of a site, and the URL that it was asked for by: https, or http if only that can be reached. */
async function heldAt(site, signal) {
  const [url, byHttp] = candidates(site);
  const file = await held(url, signal);
  if (!byHttp || !lacksHttps(file.robots)) return { url, file };
  const other = await held(byHttp, signal);
  return lacksHttps(other.robots) ? { url, file } : { url: byHttp, file: other };
}
