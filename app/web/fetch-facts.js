// Sentences about the fetch of a robots.txt.

import { count } from "./text.js";
import { instant } from "./labels.js";

/** A fetched file: its URL, status and time. */
export function facts(fetched) {
  const from = fetched.final_url === null ? fetched.url : `${fetched.url}, redirected to ${fetched.final_url}`;
  const parts = [`${from}, status ${fetched.status}, fetched ${instant(fetched.fetched_at)}.`];
  if (fetched.stale) parts.push(`Fetching it again fails (${fetched.cause ?? "unknown"}), so this is the last good copy.`);
  if (fetched.truncated) parts.push("It exceeds the size that crawlers read and was truncated.");
  return parts.join(" ");
}

/** What it means for crawlers that there is no file. */
export function without(fetched) {
  const { url, outcome, status, cause } = fetched;
  const because = failure(status, cause);
  const said = {
    unavailable: `${url} has no file (${because}). Most crawlers may then fetch everything.`,
    unreachable: `${url} could not be fetched (${because}). Crawlers should wait and try again.`,
    challenge: `${url} returns a challenge page for humans. Crawlers should wait and try again.`,
    blocked_address: `The host of ${url} resolves to an address that is not public, so it is not fetched.`,
  };
  return said[outcome] ?? `${url} is still being fetched. Try again in a moment.`;
}

/** A version in a few words. */
export function found({ outcome, size, truncated, status, cause }) {
  if (outcome === "successful") return count(size, "byte") + (truncated ? ", truncated" : "");
  const said = { unavailable: "no file", unreachable: "could not be fetched", challenge: "challenge page", blocked_address: "not a public address" };
  const because = outcome === "unavailable" || outcome === "unreachable" ? ` (${failure(status, cause)})` : "";
  return (said[outcome] ?? outcome) + because;
}

/** Why there is no file: "status 404", "server error". */
function failure(status, cause) {
  return cause === null ? `status ${status}` : cause.replaceAll("_", " ");
}
