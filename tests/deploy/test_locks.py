"""The lock files: pip takes what they name, even after a newer release of a package."""

import re
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PINNED = re.compile(r"^([a-z0-9._-]+)((?:\[[^]]*\])?)==", re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_package_that_is_required_with_an_extra_is_locked_with_it(lock: Path) -> None:
    """`coverage==1` does not hold for pip where `coverage[toml]` is required: it looks for the newest."""
    locked: dict[str, set[str]] = {}
    for name, extras in PINNED.findall(lock.read_text("utf-8")):
        locked[canonicalize_name(name)] = set(filter(None, extras.strip("[]").split(",")))
    assert locked
    missing = []
    for distribution in distributions():
        name = canonicalize_name(distribution.name)
        if name not in locked:
            continue
        for text in distribution.requires or ():
            needed = Requirement(text)
            extras = {
                extra
                for extra in ("", *locked[name])
                if needed.marker is None or needed.marker.evaluate({"extra": extra})
            }
            lacking = needed.extras - locked.get(canonicalize_name(needed.name), needed.extras)
            if extras and lacking:
                missing.append(f"{name} requires {needed.name}[{','.join(sorted(needed.extras))}]")
    assert missing == []
