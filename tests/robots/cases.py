"""The cases of tests/cases, one JSON row per line."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent.parent / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of tests/cases/`name`."""
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]
