"""Answer the cases of a file with the library, as JSON on standard output: `python answers.py CASES`."""

import json
import sys
from array import array
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import robots_core
from robots_core.robots._native.batches import split

INSTANT = "2026-11-21T12:00:00+00:00"


def answers(lines: Iterable[str]) -> list[list[object]]:
    """The members of each case's decision."""
    found: list[list[object]] = []
    for case in map(json.loads, lines):
        file = robots_core.read(case["robots"].encode())
        at = datetime.fromisoformat(INSTANT)
        it = file.decide(case["url"], case["agent"], dialect=case["dialect"], at=at)
        warnings = [[advice.line, advice.code] for advice in file.lint()]
        data, ends = case["url"].encode(), array("i", bytes(4))
        split(data, array("i", [0, len(data)]), 0, 1, {}, array("i", bytes(4)), array("i", bytes(4)), ends)
        found.append(
            [ends[0], it.verdict, it.reason, it.rule, it.line, it.rate and it.rate.interval, *file.sitemaps, warnings]
        )
    return found


if __name__ == "__main__":
    found = answers(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())
    json.dump({"from": robots_core.__file__, "answers": found}, sys.stdout)
