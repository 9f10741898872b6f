"""Files and paths made up from a few numbers, which can be turned one at a time: what the hunt for slow ones breeds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from random import Random
from string import ascii_letters, ascii_lowercase, digits
from typing import Any

from app.robots.access import BODY_LIMIT
from app.robots.paths import draft_subject, glob_subject, google_subject, rfc_subject
from app.robots.syntax import LINE_LIMIT
from tests.bench.adversaries import LONG, Adversary, cycle, fill, group

_SUBJECTS = {"rfc9309": rfc_subject, "google": google_subject, "v2": glob_subject, "draft1996": draft_subject}
_MARKERS = "".join(sorted(set(ascii_letters + digits) - set("abcdef")))
_KINDS = ("cut", "random", "joined", "bent", "late", "marker", "absent", "twice")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a file and a path are made.

    The path: `length` octets of `letters`, in which a `period` of so many letters comes again and again, or a cycle of
    all words of `order` letters; 0 for neither. A marker of its own stands after every so many letters as `markers`
    says; at the end of the path a text stands that stands nowhere else, so often as `late` says. With `query` all this
    is behind a `?` and a delimiter.

    The patterns: as many as a file of `octets` holds or `rules`, each with so many `texts` between stars, of `least` to
    `most` letters, which are by turns of the `kinds`; `aligned` to so many letters of the path, and standing `along`
    the path, against it or anywhere. They are drawn from a `pool` of so many (0: each is made anew), and cut out of the
    path as it is normalised where they are `spelt`. Each pattern begins with a `head` of so many letters of the path,
    in which rules differ that are `nested`; some are `anchored`. Of the letters of a glob one in `marks` is a set.
    """

    dialect: str
    letters: str
    length: int
    period: int
    order: int
    markers: int
    late: int
    query: bool
    octets: int
    rules: int
    texts: int
    least: int
    most: int
    kinds: tuple[str, ...]
    aligned: int
    along: str
    pool: int
    spelt: bool
    head: int
    nested: bool
    anchored: bool
    marks: int


def _logarithmic(random: Random, low: int, high: int) -> int:
    """Between the two, small ones as often as large ones."""
    return int(low * (high / low) ** random.random())


# What each field is drawn from; the first entries come up more often than others where they are repeated.
_DRAWN: dict[str, Callable[[Random], Any]] = {
    "dialect": lambda random: random.choice(("rfc9309", "rfc9309", "rfc9309", "google", "v2", "v2", "draft1996")),
    "letters": lambda random: random.choice(
        ("ab", "ab", "abc", "abcd", ascii_lowercase, ascii_letters + digits + "-._~", "$é", "éè", "$ é", "a$", ":a")
    ),
    "length": lambda random: random.choice((LONG, LONG, LONG, 80, 400, 2000, 8000)),
    "period": lambda random: random.choice((0, 0, _logarithmic(random, 1, 5000))),
    "order": lambda random: random.choice((0, 0, *range(2, 12))),
    "markers": lambda random: random.choice((0, 0, 1, 4, 20, 100)),
    "late": lambda random: random.choice((0, 0, 1, 20, 100)),
    "query": lambda random: random.random() < 0.3,
    "octets": lambda _: BODY_LIMIT,
    "rules": lambda random: random.choice((100_000, 100_000, 100_000, 5, 12, 13, 100, 1000, 15_000)),
    "texts": lambda random: random.choice((1, 2, 3, 4, 5, _logarithmic(random, 1, 8000))),
    "least": lambda random: random.choice((1, 2, 3, _logarithmic(random, 1, 64))),
    "most": lambda random: random.choice((1, 2, 3, 4, 8, _logarithmic(random, 1, 64), _logarithmic(random, 1, 4000))),
    "kinds": lambda random: tuple(random.choices(_KINDS, k=random.choice((1, 1, 2, 2, 3, 5)))),
    "aligned": lambda random: random.choice((1, 1, 2, 3, 4, 8)),
    "along": lambda random: random.choice(("along", "against", "anywhere")),
    "pool": lambda random: random.choice((0, 0, 1, 2, 16, 200, 3000)),
    "spelt": lambda random: random.random() < 0.3,
    "head": lambda random: random.choice((0, 0, 0, 1, 1, 2, _logarithmic(random, 1, 10_000))),
    "nested": lambda random: random.random() < 0.3,
    "anchored": lambda random: random.random() < 0.1,
    "marks": lambda random: random.choice((0, 1, 2, 5, 20)),
}


def drawn(random: Random) -> Shape:
    """Any shape."""
    return Shape(**{field.name: _DRAWN[field.name](random) for field in fields(Shape)})


def mutated(shape: Shape, random: Random) -> Shape:
    """The same but for a field or a few; numbers often change by little."""
    changed: dict[str, Any] = {}
    for field in random.sample([field.name for field in fields(Shape)], random.choice((1, 1, 2, 3))):
        value = getattr(shape, field)
        if type(value) is int and value > 1 and random.random() < 0.5:
            near = max(1, round(value * random.choice((0.5, 0.8, 0.9, 1.1, 1.25, 2))) + random.choice((-1, 0, 1)))
            changed[field] = min(near, {"length": LONG, "octets": BODY_LIMIT, "order": 12}.get(field, BODY_LIMIT))
        else:
            changed[field] = _DRAWN[field](random)
    return replace(shape, **changed)


def made(shape: Shape) -> Adversary:
    """The file and the path of a shape, always the same."""
    random = Random(repr(shape))
    path = _path(shape, random)
    patterns = _patterns(shape, path, random)
    above = ["Robot-version: 2.0"] if shape.dialect == "v2" else []
    return Adversary(repr(shape), shape.dialect, group(patterns, *above, octets=shape.octets), path)


def _late_text(shape: Shape) -> str:
    """Letters of the alphabet, so that their grams may stand elsewhere; as a whole it hardly does."""
    return "".join(Random(shape.most).choices(shape.letters, k=max(shape.least, shape.most % 100)))


def _path(shape: Shape, random: Random) -> str:
    length = shape.length
    if shape.order:
        most = {1: 12, 2: 12, 3: 8, 4: 6}.get(len(shape.letters), 2)
        body = cycle(shape.letters, min(shape.order, most))
    else:
        body = "".join(random.choices(shape.letters, k=shape.period or length))
    body = fill(body, length)
    if shape.markers:
        step = shape.markers
        parts = (body[at : at + step] + "".join(random.choices(_MARKERS, k=2)) for at in range(0, len(body), step))
        body = "".join(parts)
    tail = _late_text(shape) * shape.late
    begin = "/?:" if shape.query else "/"
    body = fill(body, max(0, length - len((begin + tail).encode())))
    return fill(begin + body + tail, length)


def _patterns(shape: Shape, path: str, random: Random) -> Iterator[str]:
    source = _SUBJECTS[shape.dialect](path) if shape.spelt else path
    pools: dict[int, list[str]] = {}
    # What comes of the draft's subject is no text that a file can hold.
    if shape.dialect == "draft1996":
        source = path

    def text(turn: int, progress: float) -> str:
        if not shape.pool:
            return _text(shape, source, turn, progress, random)
        pool = pools.setdefault(turn % len(shape.kinds), [])
        if len(pool) < shape.pool:
            pool.append(_text(shape, source, turn, progress, random))
        return random.choice(pool)

    for number in range(shape.rules):
        head = path[: shape.head - number % shape.head] if shape.nested and shape.head else path[: shape.head]
        if shape.query:
            head = "*?:" if not shape.nested else head
        turns = range(shape.texts)
        middle: list[str] = []
        size = len(head.encode())
        for turn in turns:
            middle.append(text(turn, turn / shape.texts))
            size += len(middle[-1]) + 1
            if size > LINE_LIMIT:
                break
        end = "$" if shape.anchored and number % 2 else "*" if shape.dialect == "v2" else ""
        pattern = "*".join([head, *middle]).replace("#", "") + end
        yield pattern.encode()[: LINE_LIMIT - len("Allow:")].decode(errors="ignore")


def _text(shape: Shape, source: str, turn: int, progress: float, random: Random) -> str:
    low, high = min(shape.least, shape.most), max(shape.least, shape.most)
    length = max(1, min(random.randint(low, high), len(source) - 1))

    def cut(length: int) -> str:
        room = len(source) - length
        if shape.along == "anywhere":
            at = random.randrange(room + 1)
        else:
            share = progress if shape.along == "along" else 1 - progress
            at = min(room, int((share + random.random() / shape.texts) * room))
        at -= at % shape.aligned
        return source[at : at + length]

    kind = shape.kinds[turn % len(shape.kinds)]
    match kind:
        case "cut":
            written = cut(length)
        case "random":
            written = "".join(random.choices(shape.letters, k=length))
        case "joined":
            half = length // 2
            written = cut(length - half) + cut(half)
        case "bent":
            written = cut(length)
            at = random.randrange(len(written))
            written = written[:at] + random.choice(shape.letters) + written[at + 1 :]
        case "twice":
            written = cut(max(1, length // 2)) * 2
        case "late":
            written = _late_text(shape) or "a"
        case "marker":
            written = "".join(random.choices(_MARKERS, k=2))
        case _:
            written = "!!"
    # Blanks of a pattern stay as they are, and what closes it is trimmed: written as an escape it is the path's.
    written = written.replace(" ", "%20")
    return _marked(written, shape, random) if shape.dialect == "v2" and shape.marks else written


def _marked(written: str, shape: Shape, random: Random) -> str:
    """The text with sets in place of some letters, most of which hold the letter."""
    parts = []
    for letter in written:
        if not letter.isalnum() or not letter.isascii() or random.randrange(shape.marks):
            parts.append(letter)
            continue
        others = random.choices(_MARKERS + shape.letters[:4].replace("é", ""), k=random.choice((1, 2, 4, 12)))
        within = "".join({letter, *others} - set("$ :é"))
        without = "".join(set(others) - {letter, *"$ :é"}) or "!"
        parts.append(random.choice((f"[{within}]", f"[{within}]", f"[!{without}]", "?")))
    return "".join(parts)
