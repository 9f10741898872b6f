"""Batches of URLs are split and matched as single ones are. Needs no pyarrow, so that `make sanitize` runs it."""

from array import array
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from random import Random

import pytest

from robots_core.origin import BadUrl, read_target
from robots_core.robots._native.batches import first_of_each, split
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.core.questions import files, questions

FILES = 60
ASKED = 3000
BEGINNING, URL = 256, 16 * 1024  # bytes of the longest beginning, and of the longest URL, that are split


def arrow(texts: list[str]) -> tuple[bytes, "array[int]"]:
    """Texts as Arrow has them: their bytes, and the offsets of their ends."""
    data = b"".join(text.encode() for text in texts)
    offsets = array("i", [0])
    for text in texts:
        offsets.append(offsets[-1] + len(text.encode()))
    return data, offsets


def numbers(count: int) -> "array[int]":
    return array("i", bytes(4 * count))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_batches_split_and_match_as_single_urls_are(dialect: str) -> None:
    bodies = files(5, FILES)
    asked = list(questions(5, bodies, ASKED))
    data, offsets = arrow([it.url for it in asked])
    codes, starts, ends, found = (numbers(ASKED) for _ in range(4))
    seen: dict[bytes, int] = {}
    split(data, offsets, 0, ASKED, seen, codes, starts, ends)
    beginnings = list(seen)
    assert list(seen.values()) == list(range(len(seen)))

    agent = read_agent("ExampleBot")
    readings = [RobotsTxt(b"" if isinstance(body, str) else body).reading(DIALECTS[dialect]) for body in bodies]
    rules = [reading.rules_of(agent) for reading in readings]
    plain = [None if it is None else it.ruleset.matcher for it in rules]
    with_query = [None if it is None else it.ruleset.with_query for it in rules]
    groups = array("i", [it.file for it in asked])
    first_of_each(plain, with_query, groups, data, starts, ends, ASKED, found)

    split_ = 0
    for question, code, start, end, number in zip(asked, codes, starts, ends, found, strict=True):
        if code < 0:
            continue
        split_ += 1
        try:
            target = read_target(question.url)
        except BadUrl:
            with pytest.raises(BadUrl):
                read_target(beginnings[code].decode())
            continue
        assert read_target(beginnings[code].decode()).origin == target.origin
        assert data[start:end].decode() == target.path
        of = rules[question.file]
        if target.path == "/robots.txt":
            assert number == -3
        elif of is not None:
            assert number == of.ruleset.first(target.path), question
    assert split_ > ASKED * 0.9


def test_parts_of_an_array_are_split_alone() -> None:
    data, offsets = arrow(["https://a.example/1", "https://b.example/2", "https://b.example/3#x", "x"])
    codes, starts, ends = numbers(2), numbers(2), numbers(2)
    split(data, offsets, 1, 2, {}, codes, starts, ends)
    assert [*codes] == [0, 0]
    assert [data[start:end] for start, end in zip(starts, ends, strict=True)] == [b"/2", b"/3"]


def test_short_buffers_and_wrong_offsets_are_refused() -> None:
    data, offsets = arrow(["https://a.example/1", "https://b.example/2"])
    good = {"data": data, "offsets": offsets, "codes": numbers(2), "starts": numbers(2), "ends": numbers(2)}
    split(first=0, count=2, seen={}, **good)
    short = {"data": data[:-1], "offsets": offsets[:2], "codes": numbers(1), "starts": numbers(1), "ends": numbers(1)}
    for name, buffer in short.items():
        with pytest.raises(ValueError, match="shorter"):
            split(first=0, count=2, seen={}, **{**good, name: buffer})
    random = Random(3)
    for _ in range(300):
        wrong = array("i", [random.choice([-5, 0, 7, 19, 20, 38, 39, 2**31 - 1]) for _ in range(3)])
        if not 0 <= wrong[0] <= wrong[1] <= wrong[2] <= len(data):
            with pytest.raises(ValueError, match=r"shorter|ascend"):
                split(data, wrong, 0, 2, {}, numbers(2), numbers(2), numbers(2))
    with pytest.raises(IndexError):
        first_of_each([None], [None], array("i", [7]), data, array("i", [17]), array("i", [19]), 1, numbers(1))
    for start, end in (0, 17_000), (0, 39), (-1, 3), (5, 4), (2**31 - 1, 2**31 - 1):
        with pytest.raises(ValueError, match="too long, or outside"):
            first_of_each([None], [None], array("i", [0]), data, array("i", [start]), array("i", [end]), 1, numbers(1))


ENDS = (
    "",
    "x",
    ":",
    "/x",
    "a:/",
    "http:",
    "https:/",
    "https://",
    "https://a",
    "http://a.b",
    "http://a.b/x",
    "://",
    "ht#",
)
LONGEST = (
    *("https://" + "a" * (BEGINNING - 8 + more) + "/x" for more in (-1, 0, 1)),
    *("https://a.example/" + "a" * (URL - 18 + more) for more in (-1, 0, 1)),
    *("http://a.example/" + "#" * (URL - 17 + more) for more in (-1, 0, 1)),
)


def split_alone(data: bytes | mmap, begin: int, end: int) -> tuple[int, int, int, list[bytes], int]:
    """What is found of one text: its code, where its path begins and ends in it, its beginning, and its number."""
    codes, starts, ends, found = (numbers(1) for _ in range(4))
    seen: dict[bytes, int] = {}
    split(data, array("i", [begin, end]), 0, 1, seen, codes, starts, ends)
    first_of_each([None], [None], numbers(1), data, starts, ends, 1, found)
    return codes[0], starts[0] - begin, ends[0] - begin, [*seen], found[0]


@pytest.mark.parametrize("text", [*ENDS, *LONGEST], ids=lambda text: f"{text[:12]}, {len(text)}")
def test_offsets_at_the_limit_of_32_bits_are_read_as_others(text: str) -> None:
    """A text that ends at, or a few bytes before, the last byte that such an offset can name."""
    url = text.encode()
    expected = split_alone(url, 0, len(url))
    with mmap(-1, 2**31, flags=MAP_PRIVATE | MAP_ANONYMOUS) as memory:  # of which only the pages that are written exist
        for gap in range(13):
            end = 2**31 - 1 - gap
            memory[end - len(url) : end] = url
            assert split_alone(memory, end - len(url), end) == expected, gap
