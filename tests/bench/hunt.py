"""Search for the slowest decision: `python -m tests.bench.hunt [SECONDS] [SEED] [STEP] [DIALECT...]`, STEP of `Cost`.

Shapes are drawn at random, and the slowest are mutated repeatedly. A printed shape can be built again with
`made(Shape(...))`.
"""

import sys
import time
from collections.abc import Sequence
from random import Random

from tests.bench.costs import Cost, cost
from tests.bench.shapes import Shape, drawn, made, mutated

KEPT = 10
_FRESH = 0.3
"""The share of random shapes; the others are mutations of the best ones."""

_ALIKE = 3
"""The number of best shapes with the same dialect, letters and kinds of segment, or all would soon be alike."""


def hunt(seconds: float, seed: int, step: str, dialects: Sequence[str] = ()) -> list[tuple[Cost, Shape]]:
    """The slowest shapes found within `seconds` of CPU time, in any dialect or in `dialects`."""
    random = Random(seed)
    kept: list[tuple[Cost, Shape]] = []
    tried: set[Shape] = set()
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        fresh = len(kept) < KEPT or random.random() < _FRESH
        shape = drawn(random) if fresh else mutated(random.choice(kept)[1], random)
        if shape in tried or (dialects and shape.dialect not in dialects):
            continue
        tried.add(shape)
        kept.append((cost(made(shape), 3, min), shape))
        kept.sort(key=lambda found: -float(getattr(found[0], step)))
        kept = _distinct(kept)[:KEPT]
    return kept


def _distinct(found: list[tuple[Cost, Shape]]) -> list[tuple[Cost, Shape]]:
    seen: dict[tuple[object, ...], int] = {}
    left = []
    for it in found:
        family = (it[1].dialect, it[1].letters, frozenset(it[1].kinds))
        seen[family] = seen.get(family, 0) + 1
        if seen[family] <= _ALIKE:
            left.append(it)
    return left


def main() -> None:
    """Print the ten slowest."""
    given = sys.argv[1:]
    seconds, seed, step, *dialects = (*given, *("60", "0", "decision")[len(given) :])
    for found, shape in hunt(float(seconds), int(seed), step, dialects):
        print(
            f"read {found.read:.1f} ms, first {found.first:.1f} ms, decision {found.decision:.3f} ms,"
            f" every {found.every:.3f} ms\n  {shape}"
        )


if __name__ == "__main__":
    main()
