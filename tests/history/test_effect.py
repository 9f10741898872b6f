"""What differs without effect is one version, however often it changes; what has an effect never is."""

from dataclasses import replace

import pytest

from app.cache.freshness import Snapshot
from app.history.versions import History, add, is_new, version_at, version_of, with_current
from robots_core.content import digest
from robots_core.robots.access import Successful

NOW = 1_790_000_000.0
FILE = "User-agent: *\nDisallow: /a\n"


def file(text: str) -> Successful:
    return Successful(200, text.encode())


def test_a_comment_that_always_changes_leaves_one_version() -> None:
    history: History = ()
    snapshot = Snapshot(file(FILE), 1000.0)
    for number in range(1, 1001):
        following = Snapshot(file(f"{FILE}# generated {number}\n"), 1000.0 + number * 60)
        history = add(history, [version_of(snapshot)], NOW)
        assert len(history) == 1
        snapshot = following
    [only] = with_current(history, snapshot, NOW)
    assert (only.digest, only.first_seen, only.last_seen) == (digest(snapshot.access), 1000, 61_000)
    assert all(version_at((only,), 1000 + at) is only for at in range(0, 60_001, 60))
    assert not is_new(history, Snapshot(file(f"{FILE}# generated 500\n"), 31_000.0))
    changed = replace(snapshot, access=file(FILE.replace("/a", "/b")))
    assert len(with_current(history, changed, NOW)) == 2


@pytest.mark.parametrize("swapped", [False, True])
def test_two_versions_within_a_second_are_two(swapped: bool) -> None:
    names = sorted("ab", key=lambda name: digest(file(f"{FILE}Disallow: /{name}")), reverse=swapped)
    first, second = (Snapshot(file(f"{FILE}Disallow: /{name}"), 1000.0) for name in names)
    history = with_current(add((), [version_of(first)], NOW), second, NOW)
    assert [it.digest for it in history] == [digest(first.access), digest(second.access)]
    # The second one lasts, and it does not matter which is written first.
    second = replace(second, fetched_at=1060.0, since=1000)
    for ended in ([first, second], [second, first]):
        stored: History = ()
        for snapshot in ended:
            stored = add(stored, [version_of(snapshot)], NOW)
        assert [it.digest for it in stored] == [digest(first.access), digest(second.access)]
    assert [it.digest for it in with_current(add((), [version_of(first)], NOW), second, NOW)] == [
        digest(first.access),
        digest(second.access),
    ]
