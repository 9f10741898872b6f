"""Files and paths generated from a few numbers, which `hunt` mutates to find slow ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from random import Random
from string import ascii_letters, ascii_lowercase, digits
from typing import Any

from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.lines import LINE_LIMIT
from tests.bench.adversaries import LONG, Adversary, filled, group

_KINDS = ("cut", "random", "bent", "suffix", "absent")


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of a file and a path.

    The path: `length` bytes of `letters`, in which a `period` of so many letters repeats, or none does (0). With
    `query` all this is behind a `?` and a delimiter.

    The patterns: `rules`, or as many as a file of `size` bytes holds, each of so many `segments` between stars, of
    `least` to `most` letters, which are of the `kinds` in turn: cut out of the path, random, cut with one letter
    changed, suffixes of one text, or absent from the path; `along` the path or anywhere. Segments are drawn from a
    `pool` of so many (0: each is new). Each pattern begins with a `head` of so many letters of the path, of which each
    rule has one fewer than the one before where they are `nested`; some are `anchored`. Of the letters of a glob one in
    `marks` is a set.
    """

    dialect: str
    letters: str
    length: int
    period: int
    query: bool
    size: int
    rules: int
    segments: int
    least: int
    most: int
    kinds: tuple[str, ...]
    along: bool
    pool: int
    head: int
    nested: bool
    anchored: bool
    marks: int


def _logarithmic(random: Random, low: int, high: int) -> int:
    """A number between the two, log-uniformly distributed."""
    return int(low * (high / low) ** random.random())


# The values of each field; repeated ones are drawn more often.
_DRAWN: dict[str, Callable[[Random], Any]] = {
    "dialect": lambda random: random.choice(("rfc9309", "rfc9309", "rfc9309", "google", "v2", "v2", "draft1996")),
    "letters": lambda random: random.choice(
        ("a", "ab", "ab", "abcd", ascii_lowercase, ascii_letters + digits, "$é", ":a")
    ),
    "length": lambda random: random.choice((LONG, LONG, LONG, 80, 400, 2000, 8000)),
    "period": lambda random: random.choice((0, 0, _logarithmic(random, 1, 5000))),
    "query": lambda random: random.random() < 0.3,
    "size": lambda _: BODY_LIMIT,
    "rules": lambda random: random.choice((100_000, 100_000, 100_000, 5, 100, 1000, 15_000)),
    "segments": lambda random: random.choice((1, 2, 3, 4, 5, _logarithmic(random, 1, 8000))),
    "least": lambda random: random.choice((1, 2, 3, _logarithmic(random, 1, 64))),
    "most": lambda random: random.choice((1, 2, 4, 8, _logarithmic(random, 1, 64), _logarithmic(random, 1, 4000))),
    "kinds": lambda random: tuple(random.choices(_KINDS, k=random.choice((1, 1, 2, 2, 3)))),
    "along": lambda random: random.random() < 0.5,
    "pool": lambda random: random.choice((0, 0, 1, 2, 16, 200, 3000)),
    "head": lambda random: random.choice((0, 0, 0, 1, 2, _logarithmic(random, 1, 10_000))),
    "nested": lambda random: random.random() < 0.3,
    "anchored": lambda random: random.random() < 0.1,
    "marks": lambda random: random.choice((0, 1, 2, 5, 20)),
}


def drawn(random: Random) -> Shape:
    """A random shape."""
    return Shape(**{field.name: _DRAWN[field.name](random) for field in fields(Shape)})


def mutated(shape: Shape, random: Random) -> Shape:
    """A mutation of the shape: a few fields change, numbers often by little."""
    changed: dict[str, Any] = {}
    for field in random.sample([field.name for field in fields(Shape)], random.choice((1, 1, 2, 3))):
        value = getattr(shape, field)
        if type(value) is int and value > 1 and random.random() < 0.5:
            near = max(1, round(value * random.choice((0.5, 0.8, 0.9, 1.1, 1.25, 2))) + random.choice((-1, 0, 1)))
            changed[field] = min(near, LONG if field == "length" else BODY_LIMIT)
        else:
            changed[field] = _DRAWN[field](random)
    return replace(shape, **changed)


def made(shape: Shape) -> Adversary:
    """The file and the path of a shape, deterministically."""
    random = Random(repr(shape))
    begin = "/?:" if shape.query else "/"
    path = filled(
        begin + filled("".join(random.choices(shape.letters, k=shape.period or shape.length)), shape.length),
        shape.length,
    )
    above = ["Robot-version: 2.0"] if shape.dialect == "v2" else []
    return Adversary(repr(shape), shape.dialect, group(_patterns(shape, path, random), *above, size=shape.size), path)


def _patterns(shape: Shape, path: str, random: Random) -> Iterator[str]:
    pools: dict[str, list[str]] = {}
    longest = LINE_LIMIT - len("Allow:")

    def segment(turn: int) -> str:
        kind = shape.kinds[turn % len(shape.kinds)]
        if not shape.pool:
            return _segment(kind, shape, path, turn, random)
        pool = pools.setdefault(kind, [])
        if len(pool) < shape.pool:
            pool.append(_segment(kind, shape, path, turn, random))
        return random.choice(pool)

    for number in range(shape.rules):
        head = path[: shape.head - number % shape.head] if shape.nested and shape.head else path[: shape.head]
        parts = ["*?:" if shape.query and not shape.nested else head]
        size = len(parts[0])
        for turn in range(shape.segments):
            parts.append(segment(turn))
            size += len(parts[-1].encode()) + 1
            if size > longest:
                break
        end = "$" if shape.anchored and number % 2 else "*" if shape.dialect == "v2" else ""
        yield filled("*".join(parts) or "*", min(size, longest)) + end


def _segment(kind: str, shape: Shape, path: str, turn: int, random: Random) -> str:
    low, high = sorted((shape.least, shape.most))
    length = max(1, min(random.randint(low, high), len(path) - 1))
    room = len(path) - length
    share = (turn + random.random()) / shape.segments if shape.along else random.random()
    written = path[int(share * room) :][:length]
    match kind:
        case "random":
            written = "".join(random.choices(shape.letters, k=length))
        case "bent":
            at = random.randrange(length)
            written = written[:at] + random.choice(shape.letters) + written[at + 1 :]
        case "suffix":
            written = path[-length:]
        case "absent":
            written = "!!"
        case _:  # "cut"
            pass
    return _marked(written, shape, random) if shape.dialect == "v2" and shape.marks else written


def _marked(written: str, shape: Shape, random: Random) -> str:
    """The text with sets in place of some letters; most sets contain the letter."""
    parts = []
    for letter in written:
        if not letter.isalnum() or not letter.isascii() or random.randrange(shape.marks):
            parts.append(letter)
            continue
        others = "".join(random.choices(ascii_letters, k=random.choice((1, 2, 4, 12))))
        parts.append(random.choice((f"[{letter}{others}]", f"[{letter}{others}]", f"[!{others}]", "?")))
    return "".join(parts)
