// A list in a scrolling box.

import { count, el } from "./text.js";

/** Rows of the longest list: browsers are slow with more elements. */
const MOST = 500;

/** Put rows into `box`, each made by `draw(row)`: the first ones if there are very many. */
export function fillList(box, rows, draw) {
  const left = rows.length - MOST;
  const rest = left > 0 ? [el("p", { class: "empty" }, `… ${count(left, "more line")}`)] : [];
  box.replaceChildren(...rows.slice(0, MOST).map(draw), ...rest);
}
