"""The core stays small enough to be held in the head: a limit on its lines of code, and on those that are compiled.

Docstrings, comments and blank lines do not count.
"""

import re
import sys
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final

CORE: Final = Path(__file__).parents[2] / "core" / "robots_core" / "robots"
LIMIT: Final = 4000
COMPILED_LIMIT: Final = 1000

PYTHON: Final = (".py", ".pyi", ".pyx", ".pxd")
COMPILED: Final = (".pyx", ".pxd", ".h")
COUNTED: Final = (*PYTHON, ".h", ".toml")

_LAYOUT: Final = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
# Strings come first, since they may have the marks of a comment.
_OF_C: Final = re.compile(r'"(?:\\.|[^"\\\n])*+"|\'(?:\\.|[^\'\\\n])*+\'|(/\*.*?\*/|//[^\n]*+)', re.DOTALL)


def count(path: Path) -> int:
    """The lines of code of a file."""
    text = path.read_text("utf-8")
    if path.suffix in PYTHON:
        return sum(len({number for it in statement for number in _lines(it)}) for statement in _statements(text))
    if path.suffix == ".h":
        text = _OF_C.sub(lambda found: re.sub(r"[^\n]", "", found[0]) if found[1] else found[0], text)
    return sum(
        1 for line in text.splitlines() if line.strip() and not (path.suffix == ".toml" and line.startswith("#"))
    )


def _statements(text: str) -> Iterator[list[tokenize.TokenInfo]]:
    """The logical lines of Python or Cython but for those that are only a string; they begin on lines of their own."""
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            if [it.type for it in statement] != [tokenize.STRING]:
                yield statement
            statement = []
        elif token.type not in _LAYOUT:
            statement.append(token)


def _lines(token: tokenize.TokenInfo) -> range:
    return range(token.start[0], token.end[0] + 1)


def main() -> int:
    """Print the counts; 1 if one is above its limit."""
    counts = {path: count(path) for path in CORE.rglob("*") if path.suffix in COUNTED}
    compiled = sum(lines for path, lines in counts.items() if path.suffix in COMPILED)
    every = sum(counts.values())
    print(
        f"the core has {every} lines of code ({LIMIT} at most), {compiled} of them compiled ({COMPILED_LIMIT} at most)"
    )
    return int(every > LIMIT or compiled > COMPILED_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
