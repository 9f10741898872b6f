"""What differs without effect has one effect; what is obeyed by any dialect has another."""

import re

from robots_core.content import digest
from robots_core.diff import same_effect
from robots_core.diff.effect import effect
from robots_core.file import File
from robots_core.robots.access import Successful, Unavailable
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.corpus import real_files

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
    plain = File(file(FILE))
    assert [same_effect(plain, File(file(text))) for text in (WITHOUT[0], WITH[0])] == [True, False]


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
