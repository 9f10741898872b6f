// What the owner of a site expects, in the form that the command line reads, too: "URL agent verdict". The verdict may
// also follow the URL at once, for all crawlers, or for those whose names follow it.

const VERDICTS = {
  allow: "allow",
  allowed: "allow",
  disallow: "disallow",
  disallowed: "disallow",
  block: "disallow",
  blocked: "disallow",
  defer: "defer",
};

/**
 * A line of the question, {line, text}, with its expectation: {verdict, agents, named}, or null if there is none.
 * `agents` are names in lower case, null for all; `named` is the crawler to ask about for it, or null.
 */
export function withExpectation({ line, text }) {
  const [url, ...words] = text.split(/\s+/);
  const verdictOf = (word) => VERDICTS[word?.toLowerCase()] ?? null;
  const expected = (word, agents, named = null) => ({ line, text: url, expected: { verdict: verdictOf(word), agents, named } });
  if (words.length > 1 && verdictOf(words.at(-1)) !== null) {
    const named = words.slice(0, -1).join(" ");
    return expected(words.at(-1), [named.toLowerCase()], named);
  }
  if (verdictOf(words[0]) === null) return { line, text, expected: null };
  const names = words.slice(1).join(" ").toLowerCase().split(/[\s,]+/).filter((name) => name !== "");
  return expected(words[0], names.length > 0 ? names : null);
}

/** Whether a line of the question is a comment. */
export function isComment({ text }) {
  return text.startsWith("#");
}

/** The verdict that is expected of `row`, an answer to a line of the question, or null; `asked` is the crawler as written. */
export function expectedOf({ expected }, row) {
  if (!expected) return null;
  const names = [row.agent, row.asked ?? row.agent].map((name) => name.toLowerCase());
  return expected.agents === null || names.some((name) => expected.agents.includes(name)) ? expected.verdict : null;
}

/** How many verdicts something is expected of, and of how many it is not met: {all, unmet}. */
export function compared(lines, rows) {
  let [all, unmet] = [0, 0];
  for (const line of lines) {
    for (const row of rows[line.row] ?? []) {
      const expected = expectedOf(line, row);
      if (expected === null) continue;
      all += 1;
      if (row.verdict !== expected) unmet += 1;
    }
  }
  return { all, unmet };
}
