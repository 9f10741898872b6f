// The line diff of two versions, with a few lines of context.

import { coloured } from "./listing.js";
import { count, el, MOST_SHOWN } from "./text.js";
import { differences } from "./diff.js";
import { VirtualList } from "./virtual-list.js";

const AROUND = 3;
const SIGNS = { same: " ", gone: "−", new: "+" };
const WORDS = { same: "", gone: "removed: ", new: "added: " };

export class Changes {
  constructor(box, facts) {
    this._box = box;
    this._facts = facts;
    this._rows = null;
  }

  /** Draw the lines to be printed, until `release()`. */
  drawAll() {
    this._rows?.drawAll();
  }

  release() {
    this._rows?.release();
  }

  /** Show the diff from one list of lines to another. */
  show(before, after) {
    const steps = differences(before, after);
    const gone = steps.filter(({ kind }) => kind === "gone").length;
    const added = steps.filter(({ kind }) => kind === "new").length;
    this._facts.textContent = gone + added === 0 ? "" : `${count(gone, "line")} removed, ${added.toLocaleString("en")} added`;
    const kept = near(steps);
    this._rows?.close();
    this._rows = new VirtualList(
      this._box,
      kept.length,
      (index) => Math.min(textOf(kept[index], before, after).length, MOST_SHOWN) + 20,
      (index) => draw(kept[index], before, after),
    );
    if (kept.length === 0) this._box.replaceChildren(el("p", { class: "empty" }, "No line differs between the two versions."));
  }
}

/** The changed lines and their context; {skipped} stands for the omitted lines. */
function near(steps) {
  const kept = [];
  let [last, next] = [-Infinity, -1];
  let skipped = 0;
  steps.forEach((step, at) => {
    if (next < at) {
      next = at;
      while (next < steps.length && steps[next].kind === "same") next += 1;
    }
    if (step.kind !== "same") last = at;
    const close = at - last <= AROUND || (next < steps.length && next - at <= AROUND);
    if (!close) skipped += 1;
    else {
      if (skipped > 0) kept.push({ skipped });
      skipped = 0;
      kept.push(step);
    }
  });
  if (skipped > 0 && kept.length > 0) kept.push({ skipped });
  return kept;
}

function textOf(step, before, after) {
  if (step.skipped) return "";
  return step.before === null ? after[step.after] : before[step.before];
}

function draw(step, before, after) {
  if (step.skipped) return el("div", { class: "line skipped" }, `${count(step.skipped, "unchanged line")}`);
  const number = (index) => el("span", { class: "number" }, index === null ? "" : String(index + 1));
  return el(
    "div",
    { class: `line two ${step.kind}` },
    number(step.before),
    number(step.after),
    el("span", { class: "step", "aria-hidden": "true" }, SIGNS[step.kind]),
    el("code", { class: "text", dir: "ltr" }, el("span", { class: "unheard" }, WORDS[step.kind]), coloured(textOf(step, before, after))),
  );
}
