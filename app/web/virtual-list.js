// A long list in a scrolling box. Only rows near the viewport have elements: a robots.txt may have half a million lines,
// and browsers are slow with that many.

const ROWS = 100;
const WEIGHT = 8000;
const ROW_HEIGHT = 24;
const MOST_PRINTED = 20_000;

export class VirtualList {
  /**
   * Put `length` rows into `box`. `draw(index)` returns the element of a row, `weigh(index)` its number of characters:
   * rows are drawn in portions of about the same cost.
   */
  constructor(box, length, weigh, draw) {
    this._box = box;
    this._draw = draw;
    this._portions = portions(length, weigh);
    this._drawn = new Set();
    this._printed = [];
    for (const portion of this._portions) {
      portion.element.style.height = `${portion.height}px`;
      portion.element.portion = portion;
    }
    box.replaceChildren(...this._portions.map((portion) => portion.element));
    box.scrollTop = 0;
    this._observer = new IntersectionObserver((entries) => this._see(entries), { root: box, rootMargin: "1200px 0px" });
    for (const portion of this._portions) this._observer.observe(portion.element);
    if (this._portions.length > 0) this._fill(this._portions[0]);
  }

  /** Stop observing the box. */
  close() {
    this._observer.disconnect();
  }

  /** Draw the visible rows again. */
  redraw() {
    for (const portion of this._drawn) this._fill(portion);
  }

  /** Draw the first rows, to be printed; `release()` ends it. */
  drawAll() {
    this._printed = this._portions.filter((portion) => portion.from < MOST_PRINTED && !this._drawn.has(portion));
    for (const portion of this._printed) this._fill(portion);
  }

  release() {
    for (const portion of this._printed) this._empty(portion);
    this._printed = [];
  }

  /** Scroll the box, and nothing around it, until the row is well inside. */
  reveal(index) {
    const portion = this._portions.find((it) => index < it.to);
    if (portion === undefined) return;
    if (!this._drawn.has(portion)) this._fill(portion);
    const row = portion.element.children[index - portion.from];
    const box = this._box.getBoundingClientRect();
    const at = row.getBoundingClientRect();
    if (at.top < box.top + 24 || at.bottom > box.bottom - 24) {
      this._box.scrollTop += at.top - box.top - this._box.clientHeight / 3;
    }
  }

  _see(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && !this._drawn.has(target.portion)) this._fill(target.portion);
      else if (!isIntersecting && this._drawn.has(target.portion)) this._empty(target.portion);
    }
  }

  _fill(portion) {
    const rows = [];
    for (let index = portion.from; index < portion.to; index += 1) rows.push(this._draw(index));
    portion.element.replaceChildren(...rows);
    portion.element.style.height = "auto";
    this._drawn.add(portion);
  }

  _empty(portion) {
    // A file of a few portions stays complete, so that the browser's own search works in it.
    if (this._portions.length <= 20) return;
    portion.element.style.height = `${portion.element.offsetHeight}px`;
    portion.element.replaceChildren();
    this._drawn.delete(portion);
  }
}

function portions(length, weigh) {
  const found = [];
  let from = 0;
  let weight = 0;
  for (let index = 0; index < length; index += 1) {
    weight += weigh(index);
    if (index + 1 - from === ROWS || weight > WEIGHT || index + 1 === length) {
      const height = (index + 1 - from) * ROW_HEIGHT;
      found.push({ from, to: index + 1, height, element: document.createElement("div") });
      from = index + 1;
      weight = 0;
    }
  }
  return found;
}
