// The table of verdicts, an ARIA grid: a row per URL and a column per crawler, or the other way round where there are
// more crawlers. One cell is in the tab order, and the arrow keys move between cells.

import { blockedOf, byKind, isNamed, listed, nameOf } from "./crawlers.js";
import { briefly, DIALECTS, KINDS, PURPOSE_STATES, PURPOSES, SIGNS, VERDICTS } from "./labels.js";
import { count, el, plain, quoted, shown } from "./text.js";
import { expectedOf } from "./expectations.js";
import { originOf } from "./file-source.js";

/** Columns of the widest table that is printed as one; of a wider one, each row is printed as a list. */
const MOST_PRINTED = 6;
/** Crawlers from which on rows are grouped by what the crawlers are for. */
const MANY = 8;
/** Crawlers with the same verdicts from which on they are one row, which opens. */
const ALIKE = 6;

const LONGEST_URL = 160;

const narrow = matchMedia("(max-width: 60rem)");

export class Table {
  /** `choose(row, column)` is called when the user chooses a cell; `why` is shown below the cell's row on a phone. */
  constructor(table, why, choose) {
    this._table = table;
    this._why = why;
    this._home = why.parentElement;
    this._choose = choose;
    this._cells = [];
    this._opened = new Set();
    table.addEventListener("keydown", (event) => this._key(event));
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-row]");
      if (button !== null) this._choose(Number(button.dataset.row), Number(button.dataset.column));
      const more = event.target.closest("button[data-opens]");
      if (more !== null) this._open(more.dataset.opens);
    });
    narrow.addEventListener("change", () => this._place());
  }

  /**
   * Show the verdicts. `lines` are the lines of the question in order: {text, row, expected, foreign} with the row's
   * number among the answers, what is expected of them, and whether the page is of another origin than the file; or
   * {text, trouble} if it could not be read. `rows` and `others` hold an array per URL; where the two differ, the way
   * leads from `rows` to `others`, or `back` from those. `picks(row, column)` says which to highlight; null for none.
   * `urls` and `agents` are the numbers of all URLs and crawlers, and `kinds` has
   * their categories by name in lower case, or is null. `isOwn`: each crawler reads the file in its own way.
   */
  show(view) {
    const { lines, agents, rows, urls, isOwn } = view;
    this._cells = [];
    this._stands = new Map();
    const columns = rows[0] ?? [];
    const read = lines.filter(({ row }) => row !== undefined);
    const purposes = purposesOf(columns);
    const perAgent = columns.length / Math.max(agents, 1);
    const home = originOf(read[0]?.text ?? "");
    this._view = { ...view, purposes, perAgent, home, columns };
    const turned = isOwn && purposes.length === 0 && agents > urls && read.length > 0;
    const [head, body] = turned ? this._crawlersDown(read) : this._urlsDown(lines);
    const unread = turned ? lines.filter(({ row }) => row === undefined).map((line) => this._unread(line, read.length)) : [];
    this._home.prepend(this._why);
    this._table.replaceChildren(el("thead", {}, head), el("tbody", {}, body, unread));
    this._table.classList.toggle("wide", (turned ? read.length : columns.length * (1 + purposes.length)) > MOST_PRINTED);
  }

  /** Remove all verdicts. */
  clear() {
    this._cells = [];
    this._home.prepend(this._why);
    this._table.replaceChildren();
  }

  /** Mark a cell as the chosen one. If it is not shown, the first cell is in the tab order instead. */
  mark(row, column) {
    let found = null;
    const stands = this._stands?.get(column) ?? column;
    for (const button of this._cells.flat()) {
      const { dataset } = button;
      const chosen = Number(dataset.row) === row && Number(dataset.column) === stands && dataset.purpose === undefined;
      if (chosen) found = button;
      button.tabIndex = -1;
      button.parentElement.setAttribute("aria-selected", String(chosen));
    }
    this._chosen = found;
    found ??= this._cells[0]?.[0];
    if (found !== undefined) found.tabIndex = 0;
    this._place();
  }

  /** Scroll the table's box, and nothing around it, until the chosen cell is in it. */
  reveal() {
    const cell = this._table.querySelector("[aria-selected=true]");
    if (cell === null) return;
    const box = this._table.parentElement;
    const over = cell.offsetLeft + cell.offsetWidth - box.scrollLeft - box.clientWidth;
    const under = cell.offsetTop + cell.offsetHeight - box.scrollTop - box.clientHeight;
    box.scrollBy(Math.max(0, over), Math.max(0, under));
  }

  /** Put "Why" beside the table, or on a phone below the row of the chosen cell. */
  _place() {
    const line = this._chosen?.closest("tr") ?? null;
    this._table.querySelector("tr.inline")?.remove();
    if (!narrow.matches || line === null) return this._home.prepend(this._why);
    return line.after(el("tr", { class: "inline" }, el("td", { colspan: line.cells.length }, this._why)));
  }

  _open(key) {
    const opened = this._opened;
    if (!opened.delete(key)) opened.add(key);
    const { row, column } = this._chosen?.dataset ?? { row: 0, column: 0 };
    this.show(this._view);
    this.mark(Number(row), Number(column));
    this._table.querySelector(`button[data-opens="${CSS.escape(key)}"]`)?.focus();
  }

  // --- URLs as rows ---

  _urlsDown(lines) {
    const { purposes, perAgent, columns, home } = this._view;
    const width = perAgent * (1 + purposes.length);
    const isPlain = width === 1 && this._view.isOwn;
    const agents = [];
    for (let at = 0; at < columns.length; at += perAgent) {
      const kind = isPlain && el("small", {}, KINDS[this._kindOf(columns[at])] ?? "");
      agents.push(el("th", { scope: width > 1 ? "colgroup" : "col", colspan: width }, quoted(nameOf(columns[at]), 60), kind));
    }
    const dialects = columns.flatMap(({ dialect }) => [
      el("th", { scope: "col", class: "dialect" }, DIALECTS[dialect] ?? dialect),
      ...purposes.map((name) => el("th", { scope: "col", class: "dialect" }, PURPOSES[name])),
    ]);
    const corner = el("td", { rowspan: isPlain ? 1 : 2, class: "corner" }, "URL", el("small", {}, hostOf(home)));
    const titles = titlesOf(columns, purposes);
    const body = lines.map((line) => {
      if (line.row === undefined) return this._unread(line, titles.length);
      const buttons = this._view.rows[line.row].flatMap((row, column) => [
        this._cell(line, column),
        ...purposes.map((name) => purposeCell(line, column, name, row.purposes?.[name])),
      ]);
      return this._row(el("th", { scope: "row" }, this._address(line)), buttons, titles);
    });
    return [[el("tr", {}, corner, agents), !isPlain && el("tr", {}, dialects)], body];
  }

  // --- crawlers as rows ---

  _crawlersDown(lines) {
    const { columns, home } = this._view;
    const small = el("small", {}, hostOf(home));
    const head = el("tr", {}, el("th", { scope: "col" }, "Crawler", small), lines.map((line) => el("th", { scope: "col" }, this._address(line))));
    const titles = lines.map(({ text }) => plain(text));
    const all = columns.map((row, column) => ({ column, row, kind: this._kindOf(row) ?? "other", rows: lines.map((line) => this._view.rows[line.row][column]) }));
    if (columns.length < MANY || this._view.kinds === null) return [[head], all.map((it) => this._crawler(it, lines, titles, true))];
    return [[head], byKind(all).flatMap(([kind, members]) => this._kind(kind, members, lines, titles))];
  }

  /** The rows of the crawlers of a kind: those that are shut out first, and those alike in one row that opens. */
  _kind(kind, members, lines, titles) {
    const named = members.filter(isNamed).length;
    const said = `${count(members.length, "crawler")}, ${named || "none"} named in the file`;
    const title = el("th", { scope: "rowgroup", colspan: lines.length + 1 }, KINDS[kind] ?? kind, " ", el("span", {}, said));
    const parts = Map.groupBy(members, (it) => `${isNamed(it)} ${it.rows.map(({ verdict, rule }) => `${verdict}${rule?.line}`)}`);
    const sorted = [...parts.values()].sort((left, right) => isNamed(right[0]) - isNamed(left[0]) || blockedOf(right[0]) - blockedOf(left[0]));
    return [el("tr", { class: "kind" }, title), ...sorted.flatMap((part) => this._alike(kind, part, lines, titles))];
  }

  _alike(kind, part, lines, titles) {
    if (part.length < ALIKE) return part.map((it) => this._crawler(it, lines, titles, false));
    const key = `${kind} ${part[0].column}`;
    const isOpen = this._opened.has(key);
    const names = part.map(({ row }) => nameOf(row));
    const which = isNamed(part[0]) ? listed(names, 3) : `${names.length} crawlers that are not named`;
    const more = el("button", { type: "button", class: "link", "aria-expanded": String(isOpen), "data-opens": key }, quoted(which, 200));
    const rest = el("small", {}, isNamed(part[0]) ? "named in the file" : "the rules for all others apply");
    if (!isOpen) for (const { column } of part) this._stands.set(column, part[0].column);
    if (isOpen) {
      const title = el("th", { scope: "rowgroup", colspan: lines.length + 1 }, more, el("br"), rest);
      return [el("tr", {}, title), ...part.map((it) => this._crawler(it, lines, titles, false))];
    }
    return [this._row(el("th", { scope: "row" }, more, el("br"), rest), lines.map((line) => this._cell(line, part[0].column)), titles)];
  }

  _crawler({ column, row, kind }, lines, titles, withKind) {
    const small = withKind && this._view.kinds !== null && el("small", {}, ` ${KINDS[kind] ?? kind}`);
    return this._row(el("th", { scope: "row" }, quoted(nameOf(row), 60), small), lines.map((line) => this._cell(line, column)), titles);
  }

  // --- parts ---

  _row(title, buttons, titles) {
    this._cells.push(buttons);
    return el("tr", {}, title, buttons.map((button, at) => el("td", { role: "gridcell", "aria-selected": "false", "data-title": titles[at] }, button)));
  }

  _unread(line, width) {
    return el("tr", { class: "unread" }, el("th", { scope: "row" }, this._address(line)), el("td", { colspan: width || 1 }, quoted(line.trouble)));
  }

  _kindOf({ agent, asked }) {
    return this._view.kinds?.get(agent.toLowerCase()) ?? this._view.kinds?.get(asked?.toLowerCase());
  }

  /** A URL: without its origin, which is said once, and broken only after a separator. */
  _address({ text, foreign }) {
    const { home } = this._view;
    const note = foreign && el("span", { class: "foreign" }, "another host’s robots.txt decides this");
    const isHome = home !== null && originOf(text) === home;
    return [addressOf(text, isHome ? home : null), note];
  }

  _cell(line, column) {
    const { rows, others, back, picks } = this._view;
    const answer = rows[line.row][column];
    const other = others?.[line.row][column] ?? null;
    const changed = other !== null && other.verdict !== answer.verdict;
    const [before, after] = back ? [other, answer] : [answer, other ?? answer];
    const newest = changed ? after : answer;
    // The newer version is held against what is expected.
    const expected = expectedOf(line, answer);
    const unmet = expected !== null && expected !== (back ? answer : (other ?? answer)).verdict;
    const classes = ["cell", newest.verdict, changed && "changed", unmet && "unmet", picks?.(line.row, column) && "picked"].filter(Boolean).join(" ");
    return el(
      "button",
      { type: "button", "data-row": line.row, "data-column": column, tabindex: -1, class: classes },
      el("span", { class: "verdicts-of" }, changed && [was(before), el("span", { class: "to", "aria-hidden": "true" }, " → ")], verdict(newest)),
      " ",
      el("span", { class: "because-of" }, because(newest)),
      (answer.partial || other?.partial) && el("span", { class: "expected" }, " not all lines read"),
      unmet && el("span", { class: "expected" }, ` expected: ${VERDICTS[expected]}`),
    );
  }

  _key(event) {
    const at = event.target.closest("button[data-row]");
    const line = this._cells.findIndex((cells) => cells.includes(at));
    if (at === null || line < 0 || event.altKey || event.metaKey) return;
    const column = this._cells[line].indexOf(at);
    const [last, end] = [this._cells.length - 1, this._cells[line].length - 1];
    const to = {
      ArrowUp: [line - 1, column],
      ArrowDown: [line + 1, column],
      ArrowLeft: [line, column - 1],
      ArrowRight: [line, column + 1],
      Home: event.ctrlKey ? [0, 0] : [line, 0],
      End: event.ctrlKey ? [last, end] : [line, end],
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const button = this._cells[to[0]]?.[to[1]];
    if (button === undefined) return;
    button.focus();
    button.click();
  }
}

/** What each column is, for a print that is too narrow for a table. */
function titlesOf(columns, purposes) {
  return columns.flatMap(({ agent, dialect }) =>
    [DIALECTS[dialect] ?? dialect, ...purposes.map((name) => PURPOSES[name])].map((what) => plain(`${agent}, ${what}`)),
  );
}

/** The purposes that any of the rows answers, in the order of the labels. */
function purposesOf(rows) {
  return Object.keys(PURPOSES).filter((name) => rows.some(({ purposes }) => purposes?.[name] !== undefined));
}

/** What the site states about a purpose; choosing it chooses the verdict before it. */
function purposeCell({ row }, column, name, stated) {
  const state = stated?.state ?? "unstated";
  const title = stated?.directive ? plain(stated.directive) : null;
  return el(
    "button",
    { type: "button", "data-row": row, "data-column": column, "data-purpose": name, tabindex: -1, class: "cell", title },
    el("span", { class: `verdicts-of purpose ${state}` }, PURPOSE_STATES[state] ?? state),
    " ",
    el("span", { class: "because-of" }, stated?.line ? `line ${stated.line}` : ""),
  );
}

/** A verdict as a coloured sign and word. */
export function verdict(row) {
  const sign = el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.verdict] ?? "?");
  const api = `API: ${row.verdict}, ${row.reason}`;
  return el("span", { class: `verdict ${row.verdict}`, title: api }, sign, el("span", { class: "word" }, VERDICTS[row.verdict] ?? row.verdict));
}

/** The verdict of the version before, as its sign. */
function was(row) {
  const sign = el("span", { "aria-hidden": "true" }, SIGNS[row.verdict] ?? "?");
  return el("span", { class: "verdict was" }, sign, el("span", { class: "unheard" }, VERDICTS[row.verdict] ?? row.verdict));
}

function because(row) {
  return row.rule ? [el("span", { class: "word" }, "line "), String(row.rule.line)] : el("span", { class: "word" }, briefly(row));
}

function hostOf(origin) {
  return origin === null ? "" : plain(origin.replace(/^https?:\/\//, ""));
}

/** A URL, without the origin that is `known`. */
export function addressOf(text, known) {
  const [, origin, path] = /^(?:([a-z]+:\/\/[^/?#]*))?(.*)$/is.exec(text);
  const said = known !== null && origin ? path || "/" : text;
  const head = said.slice(0, LONGEST_URL).split(/(?<=[/?&=])(?=.)/);
  const rest = said.length > LONGEST_URL ? [shown(said.slice(LONGEST_URL), 0)] : [];
  return el("code", {}, el("bdi", {}, head.flatMap((part, at) => [at > 0 && el("wbr"), shown(part)]), rest));
}
