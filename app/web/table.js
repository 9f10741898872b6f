// The table of verdicts: a row per page, a column per crawler and dialect. It is an ARIA grid: one cell is in the tab
// order, and the arrow keys move between cells.

import { briefly, DIALECTS, SIGNS } from "./labels.js";
import { el, quoted } from "./text.js";

export class Table {
  /** `choose(row, column)` is called when the user chooses a cell. */
  constructor(table, choose) {
    this._table = table;
    this._choose = choose;
    this._cells = [];
    table.addEventListener("keydown", (event) => this._key(event));
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-row]");
      if (button !== null) this._choose(Number(button.dataset.row), Number(button.dataset.column));
    });
  }

  /**
   * Show the verdicts. `pages` are the lines of the question in order: {text, row} with the row's number among the
   * answers, or {text, trouble} where it could not be read. `rows` and `others` hold an array per page; where the two
   * differ, the way leads from `rows` to `others`, or `back` from those.
   */
  show(pages, agents, rows, others, back) {
    this._cells = [];
    this._back = back;
    const columns = rows[0] ?? [];
    const body = pages.map((page) => this._page(page, columns.length, rows, others));
    this._table.replaceChildren(head(columns, columns.length / Math.max(agents, 1)), el("tbody", {}, body));
  }

  /** Mark a cell as the chosen one. */
  mark(row, column) {
    for (const line of this._cells) {
      for (const button of line) {
        const chosen = Number(button.dataset.row) === row && Number(button.dataset.column) === column;
        button.tabIndex = chosen ? 0 : -1;
        button.parentElement.setAttribute("aria-selected", String(chosen));
      }
    }
  }

  _page(page, width, rows, others) {
    const title = el("th", { scope: "row" }, address(page.text));
    if (page.row === undefined) {
      return el("tr", { class: "unread" }, title, el("td", { colspan: width || 1 }, quoted(page.trouble)));
    }
    const buttons = [];
    const cells = rows[page.row].map((verdict, column) => {
      const button = cell(verdict, others?.[page.row][column] ?? null, this._back, page.row, column);
      buttons.push(button);
      return el("td", { role: "gridcell", "aria-selected": "false" }, button);
    });
    this._cells.push(buttons);
    return el("tr", {}, title, cells);
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

function head(columns, perAgent) {
  const agents = [];
  for (let at = 0; at < columns.length; at += perAgent) {
    agents.push(el("th", { scope: perAgent > 1 ? "colgroup" : "col", colspan: perAgent }, quoted(columns[at].agent, 60)));
  }
  const dialects = columns.map(({ dialect }) => el("th", { scope: "col", class: "dialect" }, DIALECTS[dialect] ?? dialect));
  const corner = el("td", { rowspan: 2, class: "corner" }, "Page");
  return el("thead", {}, el("tr", {}, corner, agents), el("tr", {}, dialects));
}

function cell(answer, other, back, row, column) {
  const changed = other !== null && other.verdict !== answer.verdict;
  const [before, after] = back ? [other, answer] : [answer, other];
  const verdicts = changed ? [verdict(before), el("span", { class: "to" }, " → "), verdict(after)] : [verdict(answer)];
  const because = changed ? `${briefly(before)} → ${briefly(after)}` : briefly(answer);
  return el(
    "button",
    { type: "button", "data-row": row, "data-column": column, tabindex: -1, class: changed ? "cell changed" : "cell" },
    el("span", { class: "verdicts-of" }, verdicts),
    el("span", { class: "because-of" }, because),
  );
}

/** A verdict as a coloured sign and word. */
export function verdict(row) {
  const sign = el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.verdict] ?? "?");
  return el("span", { class: `verdict ${row.verdict}` }, sign, row.verdict);
}

/** A URL with its path emphasised: rows mostly share the origin. */
function address(text) {
  const [, origin, path] = /^([a-z]+:\/\/[^/?#]*)?(.*)$/is.exec(text);
  return el("bdi", { class: "address" }, origin && el("span", { class: "origin" }, shownPart(origin)), shownPart(path));
}

function shownPart(text) {
  return quoted(text, 160);
}
