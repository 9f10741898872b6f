// The line diff of two versions, with a few lines of context.

import { coloured } from "./file-lines.js";
import { count, el } from "./text.js";
import { differences } from "./diff.js";
import { fillList } from "./long-list.js";

const AROUND = 3;
const SIGNS = { same: " ", gone: "−", new: "+" };
const WORDS = { same: "", gone: "removed: ", new: "added: " };

/** Show the diff from one list of lines to another in `box`, and how much it is as `facts`. */
export function showChanges(box, facts, before, after) {
  const steps = differences(before, after);
  const gone = steps.filter(({ kind }) => kind === "gone").length;
  const added = steps.filter(({ kind }) => kind === "new").length;
  facts.textContent = gone + added === 0 ? "" : `${count(gone, "line")} removed, ${added.toLocaleString("en")} added`;
  fillList(box, near(steps), (step) => draw(step, before, after));
  if (gone + added === 0) box.replaceChildren(el("p", { class: "empty" }, "No line differs between the two versions."));
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

function draw(step, before, after) {
  if (step.skipped) return el("div", { class: "line skipped" }, `${count(step.skipped, "unchanged line")}`);
  const number = (index) => el("span", { class: "number" }, index === null ? "" : String(index + 1));
  return el(
    "div",
    { class: `line two ${step.kind}` },
    number(step.before),
    number(step.after),
    el("span", { class: "step", "aria-hidden": "true" }, SIGNS[step.kind]),
    el("code", { class: "text", dir: "ltr" }, el("span", { class: "unheard" }, WORDS[step.kind]), coloured(step.before === null ? after[step.after] : before[step.before])),
  );
}
