"""Renew the snapshot of crawler-user-agents in tests/cases: `python core/tools/renew_user_agents.py WHEEL`.

It is a list of crawlers with a pattern and real headers of each, under the MIT licence. Download its wheel by hand:
`pip download --no-deps crawler-user-agents`. tests/robots/test_user_agents.py then names the new headers that are not
read as the list says: mend the reader, or add them with a reason to tests/cases/user-agents-read-otherwise.jsonl.
"""

import argparse
import gzip
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

CASES = Path(__file__).parent.parent / "tests" / "cases"


def renew(wheel: Path, folder: Path) -> int:
    """Write the patterns and headers, compressed, and the licence into the folder; return the number of headers."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        rows = json.loads(archive.read(_only(names, "/crawler-user-agents.json")))
        licence = archive.read(_only(names, "/LICENSE"))
    kept = [{"pattern": row["pattern"], "headers": row["instances"]} for row in rows if row["instances"]]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
    # Without a time, so that the same list gives the same file.
    (folder / "crawler-user-agents.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "crawler-user-agents.LICENSE").write_bytes(licence)
    return sum(len(row["headers"]) for row in kept)


def _only(names: Sequence[str], end: str) -> str:
    found = [name for name in names if name.endswith(end)]
    if len(found) != 1:
        raise ValueError(f"the wheel has {len(found)} files {end[1:]!r}; expected one")
    return found[0]


def main(arguments: Sequence[str]) -> int:
    """Renew the snapshot and print its size."""
    parser = argparse.ArgumentParser(description="Renew the snapshot of crawler-user-agents in tests/cases.")
    parser.add_argument("wheel", type=Path, metavar="WHEEL", help="crawler_user_agents-VERSION-py3-none-any.whl")
    sys.stdout.write(f"{renew(parser.parse_args(arguments).wheel, CASES)} headers\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
