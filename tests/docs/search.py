"""Whether the search of the built site finds every status of `openapi.json`: `python -m tests.docs.search HTML`.

Run by `make docs`, with the Python of Sphinx.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BEFORE, _AFTER = "Search.setIndex(", ")"


def missing(html: Path) -> set[str]:
    """The statuses of errors that the search does not find."""
    index = (html / "searchindex.js").read_text().removeprefix(_BEFORE).removesuffix(_AFTER)
    paths = json.loads((ROOT / "openapi.json").read_text())["paths"]
    statuses = {status for path in paths.values() for operation in path.values() for status in operation["responses"]}
    assert "503" in statuses
    return {status for status in statuses if status >= "400"} - set(json.loads(index)["indexentries"])


if __name__ == "__main__":
    if unfound := missing(Path(sys.argv[1])):
        sys.exit(f"The search of the documentation does not find {', '.join(sorted(unfound))}.")
