// The table of verdicts: a row per page, a column per crawler and dialect, and one more for each purpose. It is an ARIA grid: one cell is in the tab
// order, and the arrow keys move between cells.

import { briefly, DIALECTS, PURPOSE_STATES, PURPOSES, SIGNS, VERDICTS } from "./labels.js";
import { el, plain, quoted } from "./text.js";
import { expectedOf } from "./expectations.js";

/** Columns of the widest table that is printed as one; of a wider one, each row is printed as a list. */
const MOST_PRINTED = 6;

export class Table {
  /** `choose(row, column)` is called when the user chooses a cell; `sideways` says that there is more beside the box. */
  constructor(table, sideways, choose) {
    this._table = table;
    this._sideways = sideways;
    this._choose = choose;
    this._cells = [];
    const box = table.parentElement;
    new ResizeObserver(() => this._sayWidth()).observe(box);
    box.addEventListener("scroll", () => this._sayWidth(), { passive: true });
    table.addEventListener("keydown", (event) => this._key(event));
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-row]");
      if (button !== null) this._choose(Number(button.dataset.row), Number(button.dataset.column));
    });
  }

  /**
   * Show the verdicts. `lines` are the lines of the question in order: {text, row, expected, foreign} with the row's
   * number among the answers, what is expected of them, and whether the page is of another origin than the file; or
   * {text, trouble} if it could not be read. `rows` and `others` hold an array per URL; where the two differ, the way
   * leads from `rows` to `others`, or `back` from those. `picks(row, column)` says which to highlight; null
   * for none.
   */
  show({ lines, agents, rows, others, back, picks }) {
    this._cells = [];
    this._view = { rows, others, back, picks };
    const columns = rows[0] ?? [];
    this._purposes = purposesOf(columns);
    this._titles = titlesOf(columns, this._purposes);
    const width = this._titles.length;
    const body = lines.map((line) => this._line(line, width));
    this._table.replaceChildren(head(columns, columns.length / Math.max(agents, 1), this._purposes), el("tbody", {}, body));
    this._table.classList.toggle("wide", width > MOST_PRINTED);
    this._sayWidth();
  }

  /** Remove all verdicts. */
  clear() {
    this._cells = [];
    this._table.replaceChildren();
    this._sayWidth();
  }

  /** Say that the table is wider than its box, and fade the side where it goes on. */
  _sayWidth() {
    const { scrollWidth, clientWidth, scrollLeft } = this._table.parentElement;
    this._sideways.hidden = scrollWidth <= clientWidth;
    this._sideways.parentElement.classList.toggle("goes-on", scrollLeft + clientWidth < scrollWidth - 1);
  }

  /** Mark a cell as the chosen one. If it is not shown, the first cell is in the tab order instead. */
  mark(row, column) {
    let found = null;
    for (const button of this._cells.flat()) {
      const { dataset } = button;
      const chosen = Number(dataset.row) === row && Number(dataset.column) === column && dataset.purpose === undefined;
      if (chosen) found = button;
      button.tabIndex = -1;
      button.parentElement.setAttribute("aria-selected", String(chosen));
    }
    found ??= this._cells[0]?.[0];
    if (found !== undefined) found.tabIndex = 0;
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

  _line(line, width) {
    const note = line.foreign && el("span", { class: "foreign" }, "another host’s robots.txt decides this");
    const title = el("th", { scope: "row" }, address(line.text), note);
    if (line.row === undefined) {
      return el("tr", { class: "unread" }, title, el("td", { colspan: width || 1 }, quoted(line.trouble)));
    }
    const buttons = this._view.rows[line.row].flatMap((row, column) => [
      this._cell(line, column),
      ...this._purposes.map((name) => purposeCell(line, column, name, row.purposes?.[name])),
    ]);
    this._cells.push(buttons);
    const titles = this._titles;
    return el(
      "tr",
      {},
      title,
      buttons.map((button, at) => el("td", { role: "gridcell", "aria-selected": "false", "data-title": titles[at] }, button)),
    );
  }

  _cell(line, column) {
    const { rows, others, back, picks } = this._view;
    const answer = rows[line.row][column];
    const other = others?.[line.row][column] ?? null;
    const changed = other !== null && other.verdict !== answer.verdict;
    const [before, after] = back ? [other, answer] : [answer, other];
    const verdicts = changed ? [verdict(before), el("span", { class: "to" }, " → "), verdict(after)] : [verdict(answer)];
    const because = changed ? `${briefly(before)} → ${briefly(after)}` : briefly(answer);
    // The newer version is held against what is expected.
    const expected = expectedOf(line, answer);
    const unmet = expected !== null && expected !== (back ? answer : (other ?? answer)).verdict;
    const classes = ["cell", changed && "changed", unmet && "unmet", picks?.(line.row, column) && "picked"].filter(Boolean).join(" ");
    return el(
      "button",
      { type: "button", "data-row": line.row, "data-column": column, tabindex: -1, class: classes },
      el("span", { class: "verdicts-of" }, verdicts),
      el("span", { class: "because-of" }, because),
      (answer.partial || other?.partial) && el("span", { class: "expected" }, "not all lines read"),
      unmet && el("span", { class: "expected" }, `expected: ${VERDICTS[expected]}`),
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
  const because = stated?.line ? `line ${stated.line}` : "";
  const title = stated?.directive ? plain(stated.directive) : null;
  return el(
    "button",
    { type: "button", "data-row": row, "data-column": column, "data-purpose": name, tabindex: -1, class: "cell", title },
    el("span", { class: `verdicts-of purpose ${state}` }, PURPOSE_STATES[state] ?? state),
    el("span", { class: "because-of" }, because),
  );
}

function head(columns, perAgent, purposes) {
  const agents = [];
  const width = perAgent * (1 + purposes.length);
  for (let at = 0; at < columns.length; at += perAgent) {
    agents.push(el("th", { scope: width > 1 ? "colgroup" : "col", colspan: width }, quoted(columns[at].agent, 60)));
  }
  const dialects = columns.flatMap(({ dialect }) => [
    el("th", { scope: "col", class: "dialect" }, DIALECTS[dialect] ?? dialect),
    ...purposes.map((name) => el("th", { scope: "col", class: "dialect" }, PURPOSES[name])),
  ]);
  const corner = el("td", { rowspan: 2, class: "corner" }, "URL");
  return el("thead", {}, el("tr", {}, corner, agents), el("tr", {}, dialects));
}

/** A verdict as a coloured sign and word. */
export function verdict(row) {
  const sign = el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.verdict] ?? "?");
  const api = `API: ${row.verdict}, ${row.reason}`;
  return el("span", { class: `verdict ${row.verdict}`, title: api }, sign, VERDICTS[row.verdict] ?? row.verdict);
}

/** A URL with its path emphasised: rows mostly share the origin. */
function address(text) {
  const [, scheme, host, path] = /^(?:([a-z]+:\/\/)([^/?#]*))?(.*)$/is.exec(text);
  const origin = host && el("span", { class: "origin" }, el("span", { class: "scheme" }, scheme), shownPart(host));
  return el("bdi", { class: "address" }, origin, shownPart(path));
}

function shownPart(text) {
  return quoted(text, 160);
}
