"""The terms, fields, settings and metrics that the documentation defines."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ROW = re.compile(r"^\| `?([^`|\n]+?)`?(?: \([^|\n]*\))? \| .+ \|$", re.MULTILINE)
READ_ELSEWHERE = {"SECRETS_DIR"}
"""Settings that say where settings are read from, so they are not fields of Settings."""


def rows(page: str) -> list[str]:
    """The first cells of a page of terms, in order, without what tells two uses of a term apart."""
    return [name for name in ROW.findall((DOCS / page).read_text()) if name not in ("term", "field")]
