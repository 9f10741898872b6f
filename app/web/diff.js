// A line diff with bounded cost: exact where that is cheap, otherwise anchored at lines that occur once in each version
// (patience diff).

const CELLS = 2_000_000;
const DEPTH = 30;

/**
 * The edit script from one list of lines to another, in order: {kind, before, after} with kind "same", "gone" or "new", and
 * the 0-based index of the line in each version, or null.
 */
export function differences(before, after) {
  const steps = [];
  const numbers = new Map();
  const numbered = (lines) => lines.map((line) => numbers.get(line) ?? (numbers.set(line, numbers.size), numbers.size - 1));
  const work = { a: numbered(before), b: numbered(after), steps, budget: { cells: CELLS } };
  compare(work, 0, before.length, 0, after.length, 0);
  return steps;
}

function compare(work, aFrom, aTo, bFrom, bTo, depth) {
  const { a, b, steps } = work;
  while (aFrom < aTo && bFrom < bTo && a[aFrom] === b[bFrom]) {
    steps.push({ kind: "same", before: aFrom++, after: bFrom++ });
  }
  let same = 0;
  while (aFrom < aTo - same && bFrom < bTo - same && a[aTo - same - 1] === b[bTo - same - 1]) same += 1;
  middle(work, aFrom, aTo - same, bFrom, bTo - same, depth);
  for (; same > 0; same -= 1) steps.push({ kind: "same", before: aTo - same, after: bTo - same });
}

function middle(work, aFrom, aTo, bFrom, bTo, depth) {
  const cells = (aTo - aFrom) * (bTo - bFrom);
  if (cells === 0) return replace(work, aFrom, aTo, bFrom, bTo);
  if (cells <= work.budget.cells) {
    work.budget.cells -= cells;
    return align(work, aFrom, aTo, bFrom, bTo);
  }
  const anchors = depth < DEPTH ? common(work, aFrom, aTo, bFrom, bTo) : [];
  if (anchors.length === 0) return replace(work, aFrom, aTo, bFrom, bTo);
  for (const [aAt, bAt] of anchors) {
    compare(work, aFrom, aAt, bFrom, bAt, depth + 1);
    work.steps.push({ kind: "same", before: aAt, after: bAt });
    [aFrom, bFrom] = [aAt + 1, bAt + 1];
  }
  return compare(work, aFrom, aTo, bFrom, bTo, depth + 1);
}

function replace({ steps }, aFrom, aTo, bFrom, bTo) {
  for (let at = aFrom; at < aTo; at += 1) steps.push({ kind: "gone", before: at, after: null });
  for (let at = bFrom; at < bTo; at += 1) steps.push({ kind: "new", before: null, after: at });
}

/** The longest common subsequence, by dynamic programming. */
function align({ a, b, steps }, aFrom, aTo, bFrom, bTo) {
  const width = bTo - bFrom + 1;
  const longest = new Uint32Array((aTo - aFrom + 1) * width);
  for (let i = aTo - aFrom - 1; i >= 0; i -= 1) {
    for (let j = width - 2; j >= 0; j -= 1) {
      longest[i * width + j] =
        a[aFrom + i] === b[bFrom + j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (aFrom + i < aTo && bFrom + j < bTo) {
    if (a[aFrom + i] === b[bFrom + j]) {
      steps.push({ kind: "same", before: aFrom + i, after: bFrom + j });
      i += 1;
      j += 1;
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
      steps.push({ kind: "gone", before: aFrom + i, after: null });
      i += 1;
    } else {
      steps.push({ kind: "new", before: null, after: bFrom + j });
      j += 1;
    }
  }
  replace({ steps }, aFrom + i, aTo, bFrom + j, bTo);
}

/** Lines that occur once in each part and keep their order, as [index, index]. */
function common({ a, b }, aFrom, aTo, bFrom, bTo) {
  const inA = once(a, aFrom, aTo);
  const inB = once(b, bFrom, bTo);
  const pairs = [];
  for (const [line, at] of inA) {
    const other = inB.get(line);
    if (at >= 0 && other !== undefined && other >= 0) pairs.push([at, other]);
  }
  return ascending(pairs.sort((left, right) => left[0] - right[0]));
}

/** Line -> its index, or -1 if it occurs more than once. */
function once(lines, from, to) {
  const found = new Map();
  for (let at = from; at < to; at += 1) found.set(lines[at], found.has(lines[at]) ? -1 : at);
  return found;
}

/** The longest subsequence of pairs with ascending second index, by patience sorting. */
function ascending(pairs) {
  const tops = [];
  const links = new Array(pairs.length);
  pairs.forEach(([, value], index) => {
    let [low, high] = [0, tops.length];
    while (low < high) {
      const half = (low + high) >> 1;
      if (pairs[tops[half]][1] < value) low = half + 1;
      else high = half;
    }
    links[index] = low > 0 ? tops[low - 1] : -1;
    tops[low] = index;
  });
  const kept = [];
  for (let index = tops.length > 0 ? tops.at(-1) : -1; index >= 0; index = links[index]) kept.push(pairs[index]);
  return kept.reverse();
}
