// What a test has found, marked in the file: the lines behind the chosen verdict, and the warnings.

import { count } from "./text.js";
import { lastOf } from "./file-lines.js";
import { UNMARKED } from "./drawn-file.js";

export class Listing {
  /** `facts` says how long the file is, and the button `warned` goes from one warning to the next. */
  constructor(editor, facts, warned) {
    this._editor = editor;
    this._facts = facts;
    this._warned = warned;
    this._next = 0;
    this._begin([], []);
    warned.addEventListener("click", () => {
      const lines = [...new Set(this._marks.warnings.map(({ line }) => line))].sort((left, right) => left - right);
      this._editor.reveal(lines[this._next % lines.length]);
      this._next += 1;
    });
  }

  /** Show what is known of a tested version, {text, lines, warnings}: one of the editor, or, if it `isCopy`, another file. */
  show({ text, lines, warnings }, isCopy = false) {
    this._editor.showCopy(isCopy ? text : null);
    this._begin(lines, warnings);
    this._facts.textContent = count(lines.length, "line");
    this._facts.title = count(new TextEncoder().encode(text).length, "byte");
    this._editor.mark(this._marks);
  }

  /** Mark nothing, and say why there is no file. */
  none(why) {
    this._editor.showCopy(null);
    this._begin([], []);
    this._facts.textContent = why;
    this._facts.title = "";
    this._editor.mark(this._marks);
  }

  /** Say how many verdicts each line decides, by its number: `light` marks them. */
  count(decided) {
    this._marks = { ...this._marks, decided };
  }

  /** Mark the lines behind the verdict of `row` and scroll to them. */
  light(row) {
    const lines = new Map();
    const mark = (line, kind) => lines.has(line) || lines.set(line, kind);
    // An override's rules are not of this file.
    const isHere = row.reason !== "overridden" && this._lines.length > 0;
    if (isHere) {
      if (row.rule) mark(row.rule.line, "decides");
      for (const span of row.explanation?.schedule ?? []) if (span.rate !== null) mark(span.rate.line, "pace");
      for (const rule of row.explanation?.rules ?? []) mark(rule.line, "matches");
    }
    const group = isHere && row.group ? [row.group.line, lastOf(this._lines, row.group.line, row.dialect)] : null;
    this._marks = { ...this._marks, verdict: row.verdict, group, lines };
    this._editor.mark(this._marks);
    const line = row.rule?.line ?? row.group?.line;
    if (isHere && line !== undefined) this._editor.reveal(line);
  }

  /** Scroll to a line. */
  reveal(line) {
    this._editor.reveal(line);
  }

  _begin(lines, warnings) {
    this._lines = lines;
    this._next = 0;
    // A warning may concern an empty file, or the end of a truncated one.
    const placed = warnings.map((warning) => {
      const line = Math.max(1, Math.min(warning.line, lines.length));
      return { ...warning, line, written: lines[line - 1] };
    });
    this._marks = { ...UNMARKED, warnings: placed };
    this._warned.hidden = warnings.length === 0;
    this._warned.textContent = count(warnings.length, "warning");
  }
}
