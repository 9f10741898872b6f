// Safe display of untrusted text.
//
// It only ever becomes text nodes: no string of a robots.txt, a URL or an answer is parsed as markup anywhere on this
// page. Characters that are invisible or reorder others (controls, bidirectional overrides, zero-width characters, lone
// surrogates) are shown as their code points.

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
export const UNSEEN_RUNS = /(?!\t)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]+/gu;

export const MOST_SHOWN = 1000;

/** An element; string children become text nodes, null and false are skipped. */
export function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The text as nodes; invisible characters are shown as U+XXXX, and text past `most` characters is only counted. */
export function shown(text, most = MOST_SHOWN) {
  const fragment = document.createDocumentFragment();
  const head = text.length > most ? text.slice(0, most) : text;
  let from = 0;
  for (const run of head.matchAll(UNSEEN_RUNS)) {
    fragment.append(head.slice(from, run.index), el("span", { class: "unseen" }, codePoints(run[0])));
    from = run.index + run[0].length;
  }
  fragment.append(head.slice(from));
  if (text.length > most) {
    fragment.append(el("span", { class: "unseen" }, `… ${count(text.length - most, "more character")}`));
  }
  return fragment;
}

/** Untrusted text inside our own line, with its direction isolated. */
export function quoted(text, most) {
  return el("bdi", {}, shown(text, most));
}

/** The text for an attribute, which cannot hold elements. */
export function plain(text) {
  return text.slice(0, MOST_SHOWN).replace(UNSEEN_RUNS, codePoints);
}

/** A run of characters that cannot be seen, as "U+200B U+202E". */
export function codePoints(run) {
  const points = [...run].slice(0, 40).map((character) => {
    const hex = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return UNSEEN.test(character) ? `U+${hex}` : character;
  });
  return points.join(" ") + (run.length > 80 ? " …" : "");
}

/** The lines as the service counts them: CRLF is one line break, and a final line break does not start a line. */
export function linesOf(text) {
  const lines = text.split(/\r\n|\r|\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** "1 line", "2 lines", "12,345 lines". */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
