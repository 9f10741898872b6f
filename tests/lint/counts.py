"""Count the real files and lines with each warning: `python -m tests.lint.counts [CODE...]`.

With codes, also print examples of lines with these warnings.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from robots_core.lint.advice import Advice
from robots_core.lint.linter import CHECKS, lint
from robots_core.robots.robots_txt import RobotsTxt
from tests.corpus import real_files

SHOWN = 20


class Counts(NamedTuple):
    """The number of different files, and the numbers of files and lines with a warning, by code."""

    files: int
    with_code: Counter[str]
    lines: Counter[str]


@cache
def real_advice() -> dict[str, tuple[bytes, list[Advice]]]:
    """Yield a host, its file and its warnings; a file that several hosts share comes once."""
    different = {body: host for host, body in real_files().items()}
    return {host: (body, lint(RobotsTxt(body), site=f"https://{host}")) for body, host in different.items()}


def counts() -> Counts:
    """Count them."""
    advised = [found for _, found in real_advice().values()]
    with_code = Counter(code for found in advised for code in {advice.code for advice in found})
    return Counts(len(advised), with_code, Counter(advice.code for found in advised for advice in found))


def examples(code: str) -> Iterator[str]:
    """Lines with this warning, from different hosts."""
    for host, (body, found) in real_advice().items():
        advice = next((advice for advice in found if advice.code == code), None)
        if advice is not None:
            text = RobotsTxt(body).line_text(advice.line) or ""
            yield f"{host}:{advice.line}: {text[:100]!r}\n    {advice.message}\n    -> {advice.instead!r}"


def main(codes: Sequence[str]) -> None:
    """Print the table, and examples of `codes`."""
    found = counts()
    print(f"{found.files} files\n{'code':<30}{'files':>7}{'':>8}{'lines':>8}")
    for code in sorted(CHECKS, key=lambda code: -found.with_code[code]):
        share = found.with_code[code] / found.files
        print(f"{code:<30}{found.with_code[code]:>7}{share:>8.1%}{found.lines[code]:>8}")
    for code in codes:
        print(f"\n{code}")
        for example in islice(examples(code), SHOWN):
            print(example)


if __name__ == "__main__":
    main(sys.argv[1:])
