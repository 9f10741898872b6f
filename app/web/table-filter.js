// Which rows of the table are shown, and in which order.

import { expectedOf } from "./expectations.js";

/** Name -> whether a row is shown: by its line of the question, its verdicts, and those of the other version. */
const KINDS = {
  all: () => true,
  disallow: (_, rows) => rows.some(({ verdict }) => verdict === "disallow"),
  allow: (_, rows) => rows.some(({ verdict }) => verdict === "allow"),
  defer: (_, rows) => rows.some(({ verdict }) => verdict === "defer" || verdict === "none"),
  differ: (_, rows) => new Set(rows.map(({ verdict }) => verdict)).size > 1,
  changed: (_, rows, others) => others?.some(({ verdict }, at) => verdict !== rows[at].verdict) ?? false,
  unexpected: (line, rows, others, back) =>
    rows.some((row, at) => {
      const { verdict } = back ? row : (others?.[at] ?? row);
      return (expectedOf(line, row) ?? verdict) !== verdict;
    }),
};

const RANKS = { none: 0, disallow: 1, defer: 2, allow: 3 };

/** Name -> what rows are sorted by, ascending. */
const ORDERS = {
  listed: null,
  url: ({ text }) => text,
  blocked: (_, rows) => Math.min(...rows.map(({ verdict }) => RANKS[verdict] ?? 0)),
  line: (_, rows) => Math.min(...rows.map(({ rule }) => rule?.line ?? Infinity)),
};

export class TableFilter {
  /** `changed()` is called when the user changes the filter. */
  constructor(form, changed) {
    this._form = form;
    this._text = form.querySelector("#filter");
    this._kind = form.querySelector("#only");
    this._order = form.querySelector("#order");
    /** A further condition: whether the verdict in a row and column is one that the user asked for; null for none. */
    this.picks = null;
    for (const field of [this._text, this._kind, this._order]) field.addEventListener("input", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Show all rows as listed. */
  reset() {
    this.picks = null;
    this._form.reset();
  }

  /**
   * Those of `lines`, {text, row, ...}, that are shown, in order; `rows` and `others` are verdicts by line, the newer ones in
   * `others`, or `back` in `rows`.
   */
  apply(lines, rows, others, back) {
    const wanted = this._text.value.trim().toLowerCase();
    const isKind = KINDS[this._kind.value];
    const everything = wanted === "" && this._kind.value === "all" && this.picks === null;
    const shown = lines.filter((line) => {
      if (line.row === undefined) return everything;
      const verdicts = rows[line.row];
      if (!line.text.toLowerCase().includes(wanted) || !isKind(line, verdicts, others?.[line.row], back)) return false;
      return this.picks === null || verdicts.some((_, column) => this.picks(line.row, column));
    });
    const order = ORDERS[this._order.value];
    if (order === null) return shown;
    const keyed = shown.map((line) => ({ line, key: line.row === undefined ? null : order(line, rows[line.row]) }));
    return keyed.sort((left, right) => compare(left.key, right.key)).map(({ line }) => line);
  }
}

/** Unread lines, whose key is null, come first. */
function compare(left, right) {
  if (left === right) return 0;
  if (left === null || right === null) return left === null ? -1 : 1;
  return left < right ? -1 : 1;
}
