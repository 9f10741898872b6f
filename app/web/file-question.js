// A question about the text of a file, as `POST v1/test` takes it.

/** Rows of the largest test that the service explains at once; of others, the page asks for the opened one. */
const MOST_EXPLAINED = 100;

/** The question to a file, {text, truncated}: texts of URLs and crawlers, and the names of dialects and purposes. */
export function fileQuestion({ text, truncated }, { urls, agents, dialects, purposes }) {
  const explain = urls.length * agents.length * Math.max(dialects.length, 1) <= MOST_EXPLAINED;
  return { robots: text, truncated, urls, agents, dialects, purpose: wanted(purposes), explain };
}

/** Purposes for the wire: none leaves them to the policy of the API key. */
export function wanted(purposes) {
  return purposes.length > 0 ? purposes : undefined;
}
