// The fetch of a robots.txt in a line.

import { count } from "./text.js";
import { ago, causeOf } from "./labels.js";

/** A fetched file, in a line: "shop.example/robots.txt · fetched just now". */
export function facts(fetched) {
  const from = [nameOf(fetched.url), ...(fetched.final_url === null ? [] : [`redirected to ${fetched.final_url}`])];
  const status = fetched.status === 200 || fetched.status === null ? [] : [`status ${fetched.status}`];
  const parts = [from.join(", "), ...status, `fetched ${ago(fetched.age)}`];
  if (fetched.stale) parts.push(`the last good copy: fetching it again fails (${causeOf(fetched.cause ?? "unknown")})`);
  if (fetched.truncated) parts.push("longer than crawlers read");
  return parts.join(" · ");
}

/** A fetch without a file, in a line: "shop.example/robots.txt · error 503 · asked just now". */
export function without(fetched) {
  const { url, outcome, status, cause } = fetched;
  const said = {
    unavailable: `status ${status}`,
    unreachable: status === null ? failure(status, cause) : `error ${status}`,
    challenge: "a challenge page for humans",
    blocked_address: "resolves to an address that is not public",
  };
  return [nameOf(url), said[outcome] ?? "still being fetched: try again in a moment", "asked just now"].join(" · ");
}

function nameOf(url) {
  return url.replace(/^https:\/\//, "");
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
