"""What differs without effect is one version, however often it changes; what has an effect never is."""

import re
from dataclasses import replace

import pytest

from app.cache.content import digest
from app.cache.freshness import Snapshot
from app.history.effect import effect
from app.history.versions import History, add, is_new, version_at, version_of, with_current
from robots_core.robots.access import Successful, Unavailable
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.corpus import real_files

NOW = 1_790_000_000.0
FILE = "User-agent: *\nDisallow: /a\n"


def file(text: str | bytes, *, truncated: bool = False) -> Successful:
    return Successful(200, text.encode() if isinstance(text, str) else text, truncated)


WITHOUT = [
    f"# generated 17\n{FILE}",
    FILE.replace("/a", "/a # why"),
    FILE.replace("\n", "\r\n\r\n", 1).replace("\r\n\r\n", "\r\n"),
    f"Generated: 17\n{FILE}Host: h.example\n",
    FILE.replace("D", "d").replace("U", " u"),
    FILE.removesuffix("\n"),
]

WITH = [
    FILE.replace("/a", "/A"),
    FILE.replace("*", "b"),
    f"{FILE}\nSitemap: https://h.example/s\n",
    f"{FILE}License: https://h.example/l\n",
    f"{FILE}Crawl-delay: 1\n",
    f"{FILE}Request-rate: 1/10s\n",
    f"{FILE}Visit-time: 0100-0200\n",
    f"{FILE}Content-Signal: ai-train=no\n",
    f"{FILE}Content-Usage: train-ai=n\n",
    f"{FILE}DisallowAITraining: /\n",
    f"{FILE}Allow: /a\n",
    FILE.replace("\n", "\n\n", 1),  # a record of its own to the draft of 1996
    FILE.replace("User-agent", "User-agents"),  # only some read it
    f"{FILE}Robot-version: 2.0\n",
]


def test_only_what_is_obeyed_has_an_effect() -> None:
    assert {effect(file(text)) for text in WITHOUT} == {effect(file(FILE))}
    assert len({effect(file(text)) for text in (FILE, *WITH)}) == 1 + len(WITH)
    assert effect(file(FILE, truncated=True)) != effect(file(FILE)) != effect(Unavailable(404)) != effect(file(""))
    assert len({effect(file(f"{FILE}Comment: generated {number}\n")) for number in range(3)}) == 1
    assert effect(Unavailable(404)) == digest(Unavailable(404))


def test_comments_in_real_files_have_no_effect_in_any_dialect() -> None:
    changed = 0
    for number, body in enumerate(real_files().values()):
        if b"\xff\xfe" in body[:4] or b"\xfe\xff" in body[:4]:
            continue
        # After each line end, as far as that separates no CR from its LF.
        other = re.sub(rb"(\r\n|\n|\r)", rb"\1# generated 17\1", body)
        if len(other) > 500_000 or effect(file(body)) != effect(file(other)):
            continue
        changed += 1
        dialect = list(DIALECTS.values())[number % len(DIALECTS)]
        ours, theirs = (RobotsTxt(text).reading(dialect).groups for text in (body, other))
        assert [(it.agents, [rule[1:] for rule in it.rules]) for it in ours] == [
            (it.agents, [rule[1:] for rule in it.rules]) for it in theirs
        ]
    assert changed > 0.9 * len(real_files())


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
