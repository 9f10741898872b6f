"""What a held file says it costs to keep, against what it costs: a cache bounded in bytes rests on it."""

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import product
from operator import itemgetter
from random import Random

import pytest

from app.robots.agents import Agent, read_agent
from app.robots.dialect import RobotsTxt, judge_file
from app.robots.dialects import DIALECTS
from app.robots.syntax import RULE_KEYS

UNDER, OVER = 1.5, 2.0
"""How many times its size a file may cost, whoever wrote it; and how many times its cost an ordinary one may claim."""

AGENT = read_agent("FooBot")


def group(*lines: str) -> bytes:
    return "\n".join(["User-agent: *", *lines, ""]).encode()


def drawn(count: int, length: int, letters: str = "abcdefghijklmnop") -> list[str]:
    """So many texts, about all of them different."""
    random = Random(f"{count} {length} {letters}")
    return ["".join(random.choices(letters, k=length)) for _ in range(count)]


def words(length: int, count: int) -> Iterator[str]:
    return ("".join(word) for word, _ in zip(product("abcdefgh", repeat=length), range(count), strict=False))


ORDINARY = {
    "five rules": group(
        "Disallow: /private/", "Allow: /private/x", "Disallow: /tmp", "Disallow: /*?sort=", "Disallow: /s"
    ),
    "prefixes": group(*(f"Disallow: /catalog/list/{word}/" for word in words(4, 1500))),
    "wildcards": group(*(f"Disallow: /catalog/*/{word}/" for word in words(4, 1500))),
}

HOSTILE = {
    "short prefixes": ("rfc9309", group(*(f"Allow:/{word}" for word in words(4, 3000)))),
    "short wildcards": ("rfc9309", group(*(f"Allow:*{word}*a" for word in words(4, 2000)))),
    "heads of their own": ("rfc9309", group(*(f"Allow:{word}*$" for word in words(4, 2000)))),
    "many texts": ("rfc9309", group(*(f"Allow:/*{word}*{word[::-1]}*x{word}" for word in words(4, 1500)))),
    "delimiters": ("rfc9309", group(*(f"Allow:/*?*{word}:" for word in words(4, 1500)))),
    "octets to encode": ("rfc9309", group(*(f"Allow:/é*ü{word}" for word in words(4, 1500)))),
    "index pages": ("google", group(*(f"Allow:{word}/index.htm" for word in words(4, 2000)))),
    "stars alone": ("rfc9309", group(*("Allow:/" + "*a*b" * 4000 + word for word in words(2, 10)))),
    "globs": ("v2", group("Robot-version: 2.0", *(f"Allow:/*?{word}*[0-9]" for word in words(4, 1500)))),
    "sets": ("v2", group("Robot-version: 2.0", *("Allow:/" + "[!a]" * 4000 + word for word in words(2, 5)))),
    "sets and texts": (
        "v2",
        group("Robot-version: 2.0", *(f"Allow:/*[{word}]a*[{word[::-1]}][ab]*[{word}]*" for word in words(4, 1500))),
    ),
    "sets before all stars": (
        "v2",
        group("Robot-version: 2.0", *(f"Allow:/[{word}][a{word}][b{word}]*[{word}]" for word in words(4, 1500))),
    ),
    # Grams of grams: what texts are told apart by is many times as large as they are.
    "texts of 33": ("rfc9309", group(*(f"Allow:/*{text}" for text in drawn(1500, 33)))),
    "texts of 130": ("rfc9309", group(*(f"Allow:/*{text}" for text in drawn(500, 130)))),
    "a hundred texts each": (
        "rfc9309",
        group(
            *("Allow:/" + "".join(f"*{text}" for text in drawn(100, 33, f"abcdefg{chr(at)}")) for at in range(65, 95))
        ),
    ),
    "queries in two forms": ("rfc9309", group(*(f"Allow:/?{text}:" for text in drawn(100, 1000, "ab:/")))),
    "wildcards in two forms": ("rfc9309", group(*(f"Allow:/*?*{text}:" for text in drawn(100, 1000, "ab:/")))),
    "octets to encode, in two forms": (
        "rfc9309",
        group(*(f"Allow:/*?:*{text}" for text in drawn(60, 500, "éü:"))),
    ),
    "index pages behind wildcards": ("google", group(*(f"Allow:/*{text}/index.htm" for text in drawn(1500, 30)))),
    "usage": ("rfc9309", group(*(f"Content-Usage:/{word} a=n" for word in words(4, 2000)))),
    "signals": ("rfc9309", group(*(f"Content-Signal:{word}=no" for word in words(4, 2000)))),
    "unknown keys": ("rfc9309", b"".join(b"%x:\n" % line for line in range(10_000))),
    "empty lines": ("draft1996", b"\n" * 50_000),
    "groups": ("rfc9309", b"User-agent:*\nAllow:\n" * 3000),
    "agents": ("rfc9309", b"".join(b"User-agent:%x\n" % line for line in range(5000))),
}


def cost(body: bytes, dialect: str, paths: Sequence[str] = ()) -> tuple[RobotsTxt, int]:
    """The file, read, compiled and asked about `paths`, and how many bytes that took, its body included."""
    compiled(body, dialect, paths)  # the first time, the interpreter makes things that it keeps
    # What else the process does meanwhile is counted too: of two measurements the lower one is nearer.
    robots, taken = min((_measured(body, dialect, paths) for _ in range(2)), key=itemgetter(1))
    return robots, taken + len(body)


def _measured(body: bytes, dialect: str, paths: Sequence[str]) -> tuple[RobotsTxt, int]:
    gc.collect()
    tracemalloc.start()
    try:
        robots = compiled(body, dialect, paths)
        gc.collect()
        return robots, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def compiled(body: bytes, dialect: str, paths: Sequence[str]) -> RobotsTxt:
    robots = RobotsTxt(body)
    state(robots, dialect, AGENT)
    # The last is so long that wildcards are asked as a crowd: they are kept as that beside what they were before.
    for path in ("/", "/a/aaaa?x:y", "/catalog/x/aaaa/" + "ab" * 50, "/catalog/x/aaaa/?" + "abcdefgh:" * 150, *paths):
        judge_file(robots, DIALECTS[dialect], AGENT, path)
    return robots


def state(robots: RobotsTxt, dialect: str, agent: Agent) -> None:
    reading = robots.reading(DIALECTS[dialect])
    selection = reading.select(agent)
    if selection is not None:
        reading.terms(selection, agent)


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_file_costs_about_its_size(name: str) -> None:
    robots, taken = cost(ORDINARY[name], "rfc9309")
    assert robots.size / OVER <= taken <= robots.size * UNDER


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_costs_much_more_than_its_size(name: str) -> None:
    dialect, body = HOSTILE[name]
    robots, taken = cost(body, dialect)
    assert taken <= robots.size * UNDER


@pytest.mark.parametrize("name", ["short prefixes", "index pages"])
def test_a_file_costs_no_more_when_each_of_its_rules_has_decided(name: str) -> None:
    dialect, body = HOSTILE[name]
    values = [value for _, _, value in RobotsTxt(body).document.scan.with_keys(RULE_KEYS)]
    robots, taken = cost(body, dialect, values)
    assert taken <= robots.size * UNDER


@pytest.mark.parametrize(("agents", "apart"), [(100, False), (100, True)], ids=["above all lines", "each with a line"])
def test_what_is_stated_to_many_agents_is_not_kept_for_each_of_them(agents: int, apart: bool) -> None:
    named = [f"User-agent: a{number}" for number in range(agents)]
    stated = [f"Content-Usage: /{word} b=n" for word in words(4, 10 * agents)]
    lines = [line for at in range(agents) for line in (named[at], *stated[10 * at : 10 * at + 10])]
    body = "\n".join(lines if apart else named + stated).encode()

    def taken(asking: Sequence[Agent]) -> int:
        robots = RobotsTxt(body)
        gc.collect()
        tracemalloc.start()
        try:
            for agent in asking:
                state(robots, "rfc9309", agent)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    crawlers = [read_agent(f"a{number}") for number in range(agents)]
    assert taken(crawlers) < 4 * taken(crawlers[:1])
