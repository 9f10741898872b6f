// The file with line numbers, the lines behind the chosen verdict, and warnings at their lines.

import { VirtualList } from "./virtual-list.js";
import { count, el, MOST_SHOWN, plain, quoted, shown } from "./text.js";

const AGENT = /^\s*user[- ]?agent/i;
const RULE = /^\s*(dis?s?al+ow|diasllow|disallaw|allow)/i;
const MEMBER = /^\s*(crawl-delay|request-rate|visit-time|robot-version|content-signal|content-usage|noindex|comment)\s*:/i;

export class Listing {
  /**
   * `pick(line)` is called when the user clicks a line of the file, `apply(line, written, instead)` when the user takes a
   * warning's advice on a line as it is written.
   */
  constructor(box, facts, warned, pick, apply) {
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
    for (const place of [box, warned]) {
      place.addEventListener("click", (event) => {
        const button = event.target.closest("button[data-advice]");
        if (button === null) return;
        const line = Number(button.dataset.advice);
        apply(line, this._lines[line - 1], this._warnings.get(line)[Number(button.dataset.at)].instead);
      });
    }
    warned.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-line]");
      if (button !== null) this._rows?.reveal(Number(button.dataset.line) - 1);
    });
    box.addEventListener("click", (event) => {
      const line = event.target.closest(".line[data-line]");
      if (event.target.closest("button[data-advice]") !== null) return;
      // Who marks text to copy it does not click.
      if (line !== null && getSelection().isCollapsed) pick(Number(line.dataset.line));
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
    if (lines.length === 0) this._box.replaceChildren(el("p", { class: "empty" }, "The file is empty: it restricts no crawler."));
    this._facts.textContent = `${count(lines.length, "line")}, ${count(bytes, "byte")}`;
    this._list(warnings);
  }

  /** Show no file, and why. */
  none(why) {
    this.show([], 0, []);
    this._facts.textContent = "";
    this._box.replaceChildren(el("p", { class: "empty" }, why));
  }

  /** Highlight the lines behind the verdict of `row` and scroll to them. */
  light(row) {
    this._marks = new Map();
    this._group = null;
    // An override's rules are not of this file.
    if (row.reason === "overridden" || this._lines.length === 0) return this._rows.redraw();
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
    const label = plain(`Apply in line ${line}: ${inOneLine(warning.instead)}`);
    const at = this._warnings.get(line).indexOf(warning);
    return [...said, " ", el("button", { type: "button", class: "small", "data-advice": line, "data-at": at, "aria-label": label, title: label }, "Apply")];
  }

  _mark(line, mark) {
    if (!this._marks.has(line)) this._marks.set(line, mark);
  }

  _draw(index) {
    const line = index + 1;
    const mark = this._marks.get(line);
    const inGroup = this._group !== null && line >= this._group[0] && line <= this._group[1];
    const warnings = this._warnings.get(line) ?? [];
    const classes = ["line", inGroup && "in-group", mark && `is-${mark}`, mark === "decides" && this._verdict, warnings.length > 0 && "odd"];
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

  _list(warnings) {
    this._warned.hidden = warnings.length === 0;
    this._warned.querySelector("summary").textContent = count(warnings.length, "warning");
    const items = warnings.slice(0, 500).map((warning) => {
      const { line } = warning;
      const button = el("button", { type: "button", class: "to-line", "data-line": line }, `line ${line}`);
      return el("li", {}, button, " ", this._advice(warning));
    });
    this._warned.querySelector("ul").replaceChildren(...items);
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
    key > 0 && el("span", { class: "key" }, shown(line.slice(0, key))),
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
