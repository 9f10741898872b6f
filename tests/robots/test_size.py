"""The estimated size of a parsed file, compared with its memory: the bound of the cache depends on it."""

from itertools import product
from random import Random

import pytest

from tests.corpus import real_files
from tests.robots.memory import Question, costs

UNDER, OVER = 1.2, 4.0
"""The most memory of any file per estimated byte, and the largest estimate of an ordinary file per byte of memory."""

CRAWLERS = ["GPTBot", "Googlebot", "CCBot", "bingbot", "AhrefsBot", "SemrushBot", "MJ12bot", "Yandex", "Baiduspider"]


def group(*lines: str) -> str:
    return "\n".join(["User-agent: *", *lines, ""])


def words(length: int, count: int) -> list[str]:
    return ["".join(word) for word, _ in zip(product("abcdefgh", repeat=length), range(count), strict=False)]


ORDINARY = {
    "five rules": group(
        "Disallow: /private/", "Allow: /private/x", "Disallow: /tmp", "Disallow: /*?sort=", "Disallow: /s"
    ),
    "prefixes": group(*(f"Disallow: /catalog/list/{word}/" for word in words(4, 1500))),
    "wildcards": group(*(f"Disallow: /catalog/*/{word}/" for word in words(4, 1500))),
}

VERSION_2 = "Robot-version: 2.0"
HOSTILE = {
    "short prefixes": ("rfc9309", group(*(f"Allow:/{word}" for word in words(4, 3000)))),
    "short wildcards": ("rfc9309", group(*(f"Allow:*{word}*a" for word in words(4, 2000)))),
    "heads of their own": ("rfc9309", group(*(f"Allow:{word}*$" for word in words(4, 2000)))),
    "many texts": ("rfc9309", group(*(f"Allow:/*{word}*{word[::-1]}*x{word}" for word in words(4, 1500)))),
    "long texts": ("rfc9309", group(*(f"Allow:/*{word * 100}" for word in words(4, 500)))),
    "delimiters": ("rfc9309", group(*(f"Allow:/*?*{word}:" for word in words(4, 1500)))),
    "delimiters in two forms": ("rfc9309", group(*(f"Allow:/*?{':' * 200}{word}" for word in words(4, 500)))),
    "bytes to encode": ("rfc9309", group(*(f"Allow:/*{'é' * 200}{word}" for word in words(4, 500)))),
    "bytes to encode in two forms": ("rfc9309", group(*(f"Allow:/*?:{'é' * 200}{word}" for word in words(4, 500)))),
    "index pages": ("google", group(*(f"Allow:{word}/index.htm" for word in words(4, 2000)))),
    "index pages behind stars": ("google", group(*(f"Allow:/*{word * 8}/index.htm" for word in words(4, 1500)))),
    "stars alone": ("rfc9309", group(*("Allow:/" + "*a*b" * 4000 + word for word in words(2, 10)))),
    "sets of many": ("v2", group(VERSION_2, *(f"Allow:/[{'acegikmoqsuwy' * 40}{word}]" for word in words(4, 300)))),
    "large sets": ("v2", group(VERSION_2, *("Allow:/[" + "".join(map(chr, range(33, 126, 2))) * 100 + "]",) * 90)),
    "globs": ("v2", group(VERSION_2, *(f"Allow:/*?{word}*[0-9]" for word in words(4, 1500)))),
    "sets": ("v2", group(VERSION_2, *("Allow:/" + "[!a]" * 4000 + word for word in words(2, 5)))),
    "usage": ("rfc9309", group(*(f"Content-Usage:/{word} a=n" for word in words(4, 2000)))),
    "signals": ("rfc9309", group(*(f"Content-Signal:{word}=no" for word in words(4, 2000)))),
    "training": ("rfc9309", group(*(f"DisallowAITraining:/*{word}" for word in words(4, 2000)))),
    "rates": ("rfc9309", group(*(f"Request-rate:1/{at % 50 + 1} {at % 24:02}00-0000" for at in range(2000)))),
    "unknown keys": ("rfc9309", "".join(f"{line:x}:\n" for line in range(10_000))),
    "empty lines": ("draft1996", "a:\n\n" * 20_000),
    "groups": ("rfc9309", "User-agent:*\nAllow:/\n" * 3000),
    "agents": ("rfc9309", "".join(f"User-agent:{line:x}\n" for line in range(5000))),
    "groups of one agent": ("rfc9309", "".join(f"User-agent:{line:x}\nAllow:/\n" for line in range(5000))),
    "records": ("draft1996", "".join(f"User-agent:{line:x}\nAllow:/\n\n" for line in range(5000))),
}


def question(body: str, dialect: str = "rfc9309", agents: int = 0) -> Question:
    latin = body.encode().decode("latin-1")
    return latin, dialect, [f"a{number}" for number in range(agents)] or ["FooBot"]


def test_hostile_files_take_little_more_than_their_size() -> None:
    found = costs([question(body, dialect) for dialect, body in HOSTILE.values()])
    over = {name: it.taken / min(it.size, it.memory) for name, it in zip(HOSTILE, found, strict=True)}
    assert {name: ratio for name, ratio in over.items() if ratio > UNDER} == {}


def test_ordinary_files_take_about_their_size() -> None:
    found = costs([question(body) for body in ORDINARY.values()])
    over = {name: it.taken / it.size for name, it in zip(ORDINARY, found, strict=True)}
    assert {name: ratio for name, ratio in over.items() if not 1 / OVER < ratio < UNDER} == {}


def test_real_files_take_little_more_than_their_size() -> None:
    bodies = Random(1).sample(sorted(real_files().values()), 60)
    questions = [(body.decode("latin-1"), dialect, ["FooBot"]) for body in bodies for dialect in ("rfc9309", "seznam")]
    found = costs(questions)
    assert max(it.taken / it.size for it in found) <= UNDER
    # Their total estimate is not much more than their memory.
    assert sum(it.size for it in found) <= OVER * sum(it.taken for it in found)


@pytest.mark.parametrize("dialect", ["rfc9309", "google", "seznam", "draft1996"])
@pytest.mark.parametrize("agents", [CRAWLERS[:1], CRAWLERS], ids=len)
def test_memory_of_real_files_is_counted_as_it_is(dialect: str, agents: list[str]) -> None:
    bodies = Random(2).sample(sorted(real_files().values()), 200)
    found = costs([(body.decode("latin-1"), dialect, agents) for body in bodies])
    assert 0.9 < sum(it.memory for it in found) / sum(it.taken for it in found) < UNDER


def test_terms_shared_by_many_agents_are_not_kept_for_each() -> None:
    named = [f"User-agent: a{number}" for number in range(100)]
    bodies = []
    for key, value in (("Content-Usage", " b=n"), ("DisallowAITraining", "*b"), ("Disallow", "*b")):
        stated = [f"{key}: /{word}{value}" for word in words(4, 1000)]
        apart = [line for at in range(100) for line in (named[at], *stated[10 * at : 10 * at + 10])]
        bodies += ["\n".join(lines) for lines in ([*named, *stated], apart)]
    found = costs([question(body, agents=agents) for body in bodies for agents in (1, 100)])
    for one, all_of_them in zip(found[::2], found[1::2], strict=True):
        assert all_of_them.taken < 5 * one.taken
