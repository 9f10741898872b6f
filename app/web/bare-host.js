// URLs as people type them: a bare host, as in "example.com/page", means https, and http where https cannot be reached.

const BARE = /^(?:localhost|\[[0-9a-f:.]+\]|[^\s/?#@:[\]\\]+\.[^\s/?#@:[\]\\]*)(?::\d{1,5})?(?:[/?#].*)?$/i;

const NO_HTTPS = new Set(["connection", "timeout", "tls"]);

/** The URL that a line of the question means: https for a bare host. */
export function withScheme(text) {
  return BARE.test(text) ? `https://${text}` : text;
}

/** The URLs that a site without a scheme may mean, in the order in which they are tried. */
export function candidates(site) {
  return site.includes("://") ? [site] : [`https://${site}`, `http://${site}`];
}

/** Whether the facts of a fetch by https say that the host may have http only. */
export function lacksHttps({ outcome, cause }) {
  return outcome === "unreachable" && NO_HTTPS.has(cause);
}
