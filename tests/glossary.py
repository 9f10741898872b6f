"""The terms that docs/glossary.md defines."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"\| `?([^`|]+?)`?(?: \([^|]*\))? \| (\w+) \| (.+) \|")
READ_ELSEWHERE = {"SECRETS_DIR"}
"""Settings that say where settings are read from, so they are not fields of Settings."""


def kinds() -> dict[str, set[str]]:
    """The terms that the glossary defines, by kind."""
    lines = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    rows = [match for match in map(ROW.fullmatch, lines) if match]
    assert len(rows) > 300
    found: dict[str, set[str]] = {}
    for term, kind, _ in (row.groups() for row in rows):
        found.setdefault(kind, set()).add(term)
    return found


def terms(kind: str) -> set[str]:
    """The terms of one kind that the glossary defines."""
    return kinds()[kind]
