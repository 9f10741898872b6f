// The file, line by line: the lines behind the chosen verdict, and warnings at theirs. The text itself is in a field that
// comes over it where the user clicks, or gets there by the keyboard.

import { VirtualList } from "./virtual-list.js";
import { count, el, MOST_SHOWN, plain, quoted, shown } from "./text.js";

const AGENT = /^\s*user[- ]?agent/i;
const RULE = /^\s*(dis?s?al+ow|diasllow|disallaw|allow)/i;
const MEMBER = /^\s*(crawl-delay|request-rate|visit-time|robot-version|content-signal|content-usage|noindex|comment)\s*:/i;

export class Listing {
  /**
   * `pick(line)` is called when the user clicks the number of a line, `edit(line, y)` when the user clicks its text, so
   * many pixels below the top of the box, and `apply(line, written, instead)` when the user takes a warning's advice on a
   * line as it is written.
   */
  constructor(box, facts, warned, { pick, edit, apply }) {
    this._box = box;
    this._isEditable = false;
    this._decided = new Map();
    this._facts = facts;
    this._warned = warned;
    this._rows = null;
    this._lines = [];
    this._warnings = new Map();
    this._marks = new Map();
    this._group = null;
    this._next = 0;
    warned.addEventListener("click", () => {
      const lines = [...this._warnings.keys()].sort((left, right) => left - right);
      this._rows?.reveal(lines[this._next % lines.length] - 1);
      this._next += 1;
    });
    box.addEventListener("click", (event) => {
      const advised = event.target.closest("button[data-advice]");
      const row = event.target.closest(".line[data-line]");
      const line = Number(row?.dataset.line);
      if (advised !== null) return apply(line, this._lines[line - 1], this._warnings.get(line)[Number(advised.dataset.at)].instead);
      if (row !== null && event.target.closest("button.number") !== null) return pick(line);
      // Who marks text to copy it, or reads a warning, does not mean to write.
      if (!this._isEditable || !getSelection().isCollapsed || event.target.closest(".warning") !== null) return undefined;
      const { top } = (row ?? box).getBoundingClientRect();
      return edit(row === null ? Math.max(this._lines.length, 1) : line, top - box.getBoundingClientRect().top);
    });
  }

  /** Say how many verdicts each line decides, by its number: such lines have buttons once `light` has drawn them. */
  count(decided) {
    this._decided = decided;
  }

  /** Show the lines of a file and its warnings; if it `isEditable`, their advice can be taken. */
  show(lines, bytes, warnings, isEditable = false) {
    this._isEditable = isEditable;
    this._lines = lines;
    this._decided = new Map();
    this._marks = new Map();
    this._group = null;
    this._warnings = new Map();
    for (const warning of warnings) {
      // A warning may concern an empty file, or the end of a truncated one.
      const line = this._lineOf(warning);
      if (!this._warnings.has(line)) this._warnings.set(line, []);
      this._warnings.get(line).push(warning);
    }
    this._rows?.close();
    this._rows = new VirtualList(
      this._box,
      lines.length,
      (index) => Math.min(lines[index].length, MOST_SHOWN) + 20,
      (index) => this._draw(index),
    );
    const empty = isEditable ? "Paste a robots.txt, drop one here, or fetch a site above." : "The file is empty: it restricts no crawler.";
    if (lines.length === 0) this._box.replaceChildren(el("p", { class: "empty" }, empty));
    this._facts.textContent = count(lines.length, "line");
    this._facts.title = count(bytes, "byte");
    this._next = 0;
    this._warned.hidden = warnings.length === 0;
    this._warned.textContent = count(warnings.length, "warning");
  }

  /** Show no file, and why. */
  none(why) {
    this.show([], 0, [], true);
    this._facts.textContent = "";
    this._facts.title = "";
    this._box.replaceChildren(el("p", { class: "empty" }, why));
  }

  /** What `light` marks: the group's first and last line, or null; the `line` that decides, or null, and the `verdict`. */
  get marked() {
    const [line] = [...this._marks].find(([, mark]) => mark === "decides") ?? [null];
    return { group: this._group, line, verdict: this._verdict };
  }

  /** Highlight the lines behind the verdict of `row` and scroll to them. */
  light(row) {
    this._marks = new Map();
    this._group = null;
    // An override's rules are not of this file.
    if (row.reason === "overridden" || this._lines.length === 0) return this._rows?.redraw();
    for (const rule of row.explanation?.rules ?? []) this._mark(rule.line, "matches");
    for (const span of row.explanation?.schedule ?? []) if (span.rate !== null) this._mark(span.rate.line, "pace");
    if (row.rule) this._marks.set(row.rule.line, "decides");
    this._verdict = row.verdict;
    this._group = !row.group ? null : [row.group.line, lastOf(this._lines, row.group.line, row.dialect)];
    this._rows.redraw();
    const line = row.rule?.line ?? row.group?.line;
    if (line !== undefined) this._rows.reveal(line - 1);
    return undefined;
  }

  /** Draw the lines to be printed, until `release()`. */
  drawAll() {
    this._rows?.drawAll();
  }

  release() {
    this._rows?.release();
  }

  /** Scroll to a line. */
  reveal(line) {
    this._rows?.reveal(line - 1);
  }

  _lineOf(warning) {
    return Math.max(1, Math.min(warning.line, this._lines.length));
  }

  /** The advice of a warning, and a button that takes it. */
  _advice(warning) {
    const said = advice(warning);
    const line = this._lineOf(warning);
    const written = this._lines[line - 1];
    if (!this._isEditable || !warning.instead || written === undefined) return said;
    const label = plain(`Fix it: line ${line}, write ${inOneLine(warning.instead)}`);
    const at = this._warnings.get(line).indexOf(warning);
    return [...said, " ", el("button", { type: "button", "data-advice": line, "data-at": at, "aria-label": label, title: label }, "Fix it")];
  }

  _mark(line, mark) {
    if (!this._marks.has(line)) this._marks.set(line, mark);
  }

  _draw(index) {
    const line = index + 1;
    const mark = this._marks.get(line);
    const inGroup = this._group !== null && line >= this._group[0] && line <= this._group[1];
    const warnings = this._warnings.get(line) ?? [];
    const classes = ["line", inGroup && "in-group", mark && `is-${mark}`, mark === "decides" && this._verdict, warnings.length > 0 && "warned"];
    const tag = mark ?? (inGroup && line === this._group[0] ? "group" : null);
    return el(
      "div",
      { class: classes.filter(Boolean).join(" "), "data-line": line },
      this._number(line),
      el("code", { class: "text", dir: "ltr" }, coloured(this._lines[index])),
      tag && el("span", { class: "tag" }, tag),
      warnings.map((warning) => el("p", { class: "warning", "data-code": warning.code }, this._advice(warning))),
    );
  }

  _number(line) {
    const decided = this._decided.get(line);
    if (decided === undefined) return el("span", { class: "number" }, String(line));
    const label = `line ${line} decides ${count(decided, "verdict")}: show them`;
    return el("button", { type: "button", class: "number", title: label, "aria-label": label }, String(line));
  }
}

/** A warning in words, with what to write instead where the words do not say it. */
function advice({ message, instead }) {
  const isNew = instead && !message.includes(instead);
  return [quoted(message), isNew && el("span", { class: "instead" }, instead.split("\n").map((line) => el("code", {}, quoted(line, 300))))].filter(Boolean);
}

/** A replacement of one or more lines as a part of a sentence. */
export function inOneLine(instead) {
  return instead.split("\n").join(", and below it ");
}

/** A line with its key and comment separated. */
export function coloured(line) {
  const hash = line.indexOf("#");
  const end = Math.min(hash < 0 ? line.length : hash, MOST_SHOWN);
  const colon = line.indexOf(":");
  const key = colon > 0 && colon <= 40 && colon < end ? colon + 1 : 0;
  return [
    key > 0 && el("span", { class: AGENT.test(line) ? "key agent" : "key" }, shown(line.slice(0, key))),
    shown(end < MOST_SHOWN ? line.slice(key, end) : line.slice(key)),
    end < MOST_SHOWN && end < line.length && el("span", { class: "comment" }, shown(line.slice(end))),
  ].filter(Boolean);
}

/**
 * The last line of the group that begins at line `first`: the one before the next group's. Only for the mark beside the
 * lines; which rules count is for the service to say.
 */
function lastOf(lines, first, dialect) {
  const early = dialect === "seznam" || dialect === "v2";
  let [last, closed] = [first, false];
  for (let at = first - 1; at < lines.length; at += 1) {
    const line = lines[at];
    if (line.trim() === "") {
      if (dialect === "draft1996") break;
      continue;
    }
    if (AGENT.test(line)) {
      if (closed) break;
      last = at + 1;
    } else if (RULE.test(line) || MEMBER.test(line)) {
      closed = closed || RULE.test(line) || early;
      last = at + 1;
    }
  }
  return last;
}
