// What a fetch of a robots.txt came to, put into words.

import { count } from "./text.js";
import { instant } from "./words.js";

/** What there is to say about a file that was fetched. */
export function facts(fetched) {
  const from = fetched.final_url === null ? fetched.url : `${fetched.url}, which led to ${fetched.final_url}`;
  const parts = [`${from}, status ${fetched.status}, fetched ${instant(fetched.fetched_at)}.`];
  if (fetched.stale) parts.push(`A new fetch fails (${fetched.cause ?? "unknown"}), so this is the last good copy.`);
  if (fetched.truncated) parts.push("It is longer than crawlers read, and was cut.");
  return parts.join(" ");
}

/** What it means that there is no file. */
export function without(fetched) {
  const { url, outcome, status, cause } = fetched;
  const because = failure(status, cause);
  const said = {
    unavailable: `${url} holds no file (${because}). Most crawlers take that for permission to fetch everything.`,
    unreachable: `${url} could not be read (${because}). Crawlers are to wait and ask again.`,
    challenge: `${url} asks for proof of being human. Crawlers are to wait and ask again.`,
    blocked_address: `The host of ${url} leads to an address that is not public, so it is not asked.`,
  };
  return said[outcome] ?? `${url} is still being fetched. Try again in a moment.`;
}

/** What a version was, in a few words. */
export function found({ outcome, size, truncated, status, cause }) {
  if (outcome === "successful") return count(size, "byte") + (truncated ? ", cut" : "");
  const said = { unavailable: "no file", unreachable: "could not be read", challenge: "asked for proof of being human", blocked_address: "led to an address that is not public" };
  const because = outcome === "unavailable" || outcome === "unreachable" ? ` (${failure(status, cause)})` : "";
  return (said[outcome] ?? outcome) + because;
}

/** Why there is no file: "status 404", "server error". */
function failure(status, cause) {
  return cause === null ? `status ${status}` : cause.replaceAll("_", " ");
}
