// Fetches the file of a site into the field, and lets operators have it fetched again.

import { backoffs, hasKey, held, refresh, ServiceError } from "./api.js";
import { candidates, lacksHttps } from "./bare-host.js";
import { facts, without } from "./fetch-facts.js";
import { setView } from "./view.js";

const at = (id) => document.getElementById(id);

export class SiteFetch {
  /**
   * The parts of the page: `question`, `answer`, the FileField `robots`, `source`, `earlier`, the TestRun `run`, and
   * `replacing(what)`, which is called before a text of the user's is replaced.
   */
  constructor(parts) {
    this._parts = parts;
    this._fetching = null;
    at("refetch").addEventListener("click", () => this._refetch());
  }

  /**
   * Fetch the file of the site in the field, and test it; without a file, show what the service decides. That may fetch
   * other sites, so it takes more than a link.
   */
  async fetch({ byLink = false } = {}) {
    const { question, answer, robots, source, earlier, run, replacing } = this._parts;
    this._fetching?.abort();
    run.stop();
    const mine = (this._fetching = new AbortController());
    const { site } = source;
    if (site !== "") replacing("The file of the site takes the place of what was here.");
    earlier.drop();
    setView("text");
    at("refetch").hidden = true;
    at("linked").hidden = true;
    if (site === "") return source.say("Name a site, as in https://www.example.com/", true);
    source.site = candidates(site)[0];
    source.say("Fetching …");
    answer.outdate("Fetching another file.");
    try {
      const { url, file } = await heldAt(site, mine.signal);
      if (mine.signal.aborted) return undefined;
      source.site = url;
      earlier.offer({ url, at: file.robots.fetched_at, file: file.text !== null, cut: file.robots.truncated });
      question.takeSite(url);
      this._offerRefetch(mine.signal);
      if (file.text === null) {
        this._without(without(file.robots));
        setView("service");
        if (byLink) return this._say("Press Test to see what crawlers do without the file.");
        return await run.ask({ quietly: true });
      }
      robots.value = file.text;
      source.fetched(url, file.robots.truncated, facts(file.robots));
      return await run.ask();
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      if (!(error instanceof ServiceError)) throw error;
      this._without(error.message);
      return this._say("There is no file to test.");
    }
  }

  /** Let operators have the file fetched again: what the service holds may be a day old. */
  async _offerRefetch(signal) {
    const waits = await backoffs(signal).catch(() => null);
    // Without a key, the service asks for one if it is wanted.
    if (!signal.aborted) at("refetch").hidden = waits === null && hasKey();
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

  /** Show why there is no file, and nothing of a former one. Text that the user has written is kept. */
  _without(why) {
    const { answer, robots, source, run } = this._parts;
    run.quiet();
    answer.clear();
    source.forget();
    if (!robots.isTyped) robots.value = "";
    source.say(robots.value === "" ? why : `${why} The text below is not of this site.`, true);
  }

  _say(text) {
    at("summary").textContent = text;
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
