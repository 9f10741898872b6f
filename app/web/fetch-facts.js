// Sentences about the fetch of a robots.txt.

import { count } from "./text.js";
import { ago, causeOf, instant } from "./labels.js";

/** A fetched file: its URL, status and time. */
export function facts(fetched) {
  const from = fetched.final_url === null ? fetched.url : `${fetched.url}, redirected to ${fetched.final_url}`;
  const parts = [`${from}, status ${fetched.status}, fetched ${ago(fetched.age)} (${instant(fetched.fetched_at)}).`];
  if (fetched.stale) parts.push(`The last good copy: fetching it again fails (${causeOf(fetched.cause ?? "unknown")}).`);
  if (fetched.truncated) parts.push("It is longer than crawlers read, and was cut.");
  return parts.join(" ");
}

/** What it means for crawlers that there is no file. */
export function without(fetched) {
  const { url, outcome, status, cause } = fetched;
  const said = {
    unavailable: `${url}: no robots.txt (status ${status}). Crawlers may fetch everything.`,
    unreachable: `${url} could not be fetched: ${failure(status, cause)}. Crawlers should wait and try again.`,
    challenge: `${url} returns a challenge page for humans. Crawlers should wait and try again.`,
    blocked_address: `The host of ${url} resolves to an address that is not public, so it is not fetched.`,
  };
  return said[outcome] ?? `${url} is still being fetched. Try again in a moment.`;
}

/** A version in a few words. */
export function found({ outcome, size, truncated, status, cause }) {
  if (outcome === "successful") return count(size, "byte") + (truncated ? ", cut" : "");
  const said = {
    unavailable: `no file (status ${status})`,
    unreachable: `not fetched: ${failure(status, cause)}`,
    challenge: "challenge page",
    blocked_address: "not a public address",
  };
  return said[outcome] ?? outcome;
}

/** Why there is no file: "status 404", "the host name was not found". */
function failure(status, cause) {
  return cause === null ? `status ${status}` : causeOf(cause);
}
