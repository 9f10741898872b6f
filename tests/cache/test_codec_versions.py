"""Releases that share a store read what each other writes."""

import json
from typing import Any

import pytest

from app.cache.codec import VERSION, decode, encode
from app.cache.compression import compress, decompress
from app.cache.freshness import Failing, Snapshot
from robots_core.robots.access import Blocked, Cause, Successful, Unavailable, Unreachable, Validators

AT = 1_790_000_000.25
DEAD = Unreachable(Cause.DNS)
BUSY = Unreachable(Cause.TOO_MANY_REQUESTS, 429, 120)

SNAPSHOTS = {
    "file": Snapshot(
        Successful(200, b"User-agent: *\nDisallow: /a\n", content_type="text/plain"),
        AT,
        None,
        Validators('"1"', "Sat, 21 Nov 2026 18:30:00 GMT"),
        3600.0,
    ),
    "redirected and truncated": Snapshot(
        Successful(206, b"\xef\xbb\xbfDisallow: /\xc3\xa9\n", truncated=True),
        AT,
        "https://other.example/robots.txt",
        since=1_780_000_000,
    ),
    "file of an origin that fails": Snapshot(
        Successful(200, b""), AT, lifetime=0.0, failing=Failing(AT + 10, AT + 700.5, 2, BUSY)
    ),
    "missing": Snapshot(Unavailable(404), AT, lifetime=86400.0),
    "redirect loop": Snapshot(Unavailable(302, Cause.REDIRECT_LOOP), AT, "http://www.example.com/again"),
    "unreachable": Snapshot(DEAD, AT, failing=Failing(AT - 400, AT, 3, DEAD)),
    "blocked": Snapshot(Blocked("10.0.0.1"), AT),
}


def later(data: bytes, **members: Any) -> bytes:
    """These bytes as a later release would write them: more members, and more items in a list."""
    facts, _, body = decompress(data[2:], 10_000).partition(b"\n")
    known = json.loads(facts)
    known["access"].append({"more": [1]})
    if "failing" in known:
        known["failing"] |= {"more": [1], "failure": {**known["failing"]["failure"], "more": [1]}}
    return data[:2] + compress(json.dumps({**known, "fence": 7, **members}).encode() + b"\n" + body)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_additions_of_later_releases_are_ignored(name: str) -> None:
    data = encode(SNAPSHOTS[name])
    assert decode(later(data)) == SNAPSHOTS[name]
    assert decode(later(data, min_version=VERSION)) == SNAPSHOTS[name]


def test_a_value_that_needs_a_later_release_is_a_miss() -> None:
    assert decode(later(encode(SNAPSHOTS["file"]), min_version=VERSION + 1)) is None


def test_missing_members_have_defaults() -> None:
    facts = {"access": ["unavailable", 404, None], "fetched_at": AT}
    data = b"R\x02" + compress(json.dumps(facts).encode() + b"\n")
    assert decode(data) == Snapshot(Unavailable(404), AT)
