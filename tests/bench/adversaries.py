"""Files and paths made to be slow: each aims at one step of reading, compiling or deciding, as far as its limits go."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from string import ascii_letters, ascii_lowercase, digits

from app.origin import URL_LIMIT
from app.robots.access import BODY_LIMIT
from app.robots.syntax import LINE_LIMIT

RULES = 15_000
SHORT, MIDDLE, LONG = 80, 2000, URL_LIMIT - len("http://a.example")
"""Lengths of a path; LONG is the longest that a URL can have."""


@dataclass(frozen=True, slots=True)
class Adversary:
    """A file and a path to ask it about, and what is meant to be slow about them."""

    name: str
    dialect: str
    body: bytes
    path: str


def _group(patterns: Iterable[str], *above: str) -> bytes:
    """One group with these patterns, or as many of them as a file can hold."""
    lines, size = ["User-agent: *", *above], 100
    for pattern in patterns:
        size += len(pattern.encode()) + len("Allow:\n")
        if size > BODY_LIMIT:
            break
        lines.append(f"Allow:{pattern}")
    return "\n".join([*lines, ""]).encode()


def _lines(longest: Iterable[str]) -> Iterator[str]:
    """Each cut to what is read of a line."""
    return (pattern[: LINE_LIMIT - len("Allow:")] for pattern in longest)


def _words(length: int, letters: str = ascii_lowercase) -> list[str]:
    """All words of that length, shuffled, so that neighbours have little in common."""
    words = ["".join(word) for word in product(letters, repeat=length)]
    Random(length).shuffle(words)
    return words


_WORDS = _words(4)[:RULES]
_FIRST_HALF, _SECOND_HALF = "".join(_words(4, "abcdefghijklm")), "".join(_words(4, "nopqrstuvwxyz"))


def _stars() -> Iterator[Adversary]:
    many = "*a" * LINE_LIMIT
    yield Adversary("one rule of 8,000 stars", "rfc9309", _group(_lines([f"/{many}"])), "/" + "a" * (LONG - 1))
    random = Random(1)
    lines = _lines("/b" + "".join(f"*{random.choice('ab')}" for _ in range(LINE_LIMIT)) for _ in range(40))
    yield Adversary("30 rules of 8,000 stars", "rfc9309", _group(lines), "/b" + "ab" * (LONG // 2 - 2))
    for length in (SHORT, MIDDLE, LONG):
        path = "/shared/head/" + "".join(word[:3] for word in _WORDS)
        shared = _group(f"/shared/head/*{word}*!" for word in _WORDS)
        yield Adversary(f"15,000 with a shared head, path {length}", "rfc9309", shared, path[:length])


def _wrong_order() -> Iterator[Adversary]:
    """Every text stands in the path, in an order that no pattern has."""
    for texts, length in product((2, 3), (SHORT, 400, MIDDLE, LONG)):
        first, second = _FIRST_HALF[: length // 2], _SECOND_HALF[: length // 2 - 1]
        random = Random(length)

        def text(part: str, random: Random = random) -> str:
            at = random.randrange(len(part) - 8)
            return part[at : at + random.randrange(3, 8)]

        order = {2: (second, first), 3: (first, second, first)}[texts]
        patterns = ("/*" + "*".join(map(text, order)) for _ in range(RULES))
        name = f"15,000 of {texts} texts in the wrong order, path {length}"
        yield Adversary(name, "rfc9309", _group(patterns), f"/{first}{second}")


def _chains() -> Iterator[Adversary]:
    """Every text stands where the one before needs it, but for the one in the middle: only following them tells."""
    letters = ascii_letters + digits + "-._~"
    for texts, width, length in (
        (8000, 1, LONG),
        (2000, 1, LONG),
        (2000, 2, LONG),
        (400, 2, LONG),
        (100, 2, LONG),
        (20, 1, LONG),
        (20, 1, SHORT),
        (20, 3, LONG),
        (100, 8, LONG),
    ):
        random = Random(texts * width)
        path = "".join(random.choices(letters, k=length - 3))
        patterns = (f"/*{_chain(path, texts, width, random)}" for _ in range(BODY_LIMIT // (texts * (width + 1))))
        name = f"as many as a file holds of {texts} texts of {width}, path {length}"
        yield Adversary(name, "rfc9309", _group(patterns), f"/!!{path}")
    for texts in (2, 5):
        random = Random(texts)
        quarters = ["".join(random.choices(letters, k=LONG // 4)) for _ in range(2)]
        patterns = ("/*" + "*".join(_piece(quarters[text % 2], random) for text in range(texts)) for _ in range(50_000))
        path = "/" + (quarters[1] + quarters[0]) * (1 if texts == 2 else 2)
        yield Adversary(f"as many as a file holds of {texts} texts by turns", "rfc9309", _group(patterns), path[:LONG])


def _chain(path: str, texts: int, width: int, random: Random) -> str:
    """Pieces of `path`, one behind the other and over all of it, with stars between them; the middle one is none."""
    gap = (len(path) - 1 - texts * width) / texts
    begins, at = [], 0.0
    for _ in range(texts):
        begins.append(int(at))
        at += width + gap * random.random()
    pieces = [path[begin : begin + width] for begin in begins]
    pieces[texts // 2] = "!!"
    return "*".join(pieces)


def _piece(path: str, random: Random) -> str:
    at = random.randrange(len(path) - 4)
    return path[at : at + random.randrange(2, 5)]


def _texts() -> Iterator[Adversary]:
    runs = ((before, behind) for before in range(41, 96) for behind in range(1, 99 - before))
    near = _group(f"/*{'a' * before}b{'a' * behind}" for before, behind in runs)
    path = "/" + ("a" * 40 + "b") * (LONG // 41)
    yield Adversary(f"texts that nearly match everywhere, path {len(path)}", "rfc9309", near, path)
    random = Random(100)
    many = ("/*" + "*".join(_bent(random) for _ in range(100)) + "*c" for _ in range(200))
    yield Adversary("100 texts each that nearly match everywhere", "rfc9309", _group(many), f"/c{path[1:-2]}")
    few = (f"/*{'a' * before}ba" for before in range(86, 98))
    yield Adversary("12 texts that nearly match everywhere", "rfc9309", _group(few), "/" + "a" * (LONG - 1))
    nested = ["/" + "a" * length for length in range(1, 1100)]
    yield Adversary("nested prefixes", "rfc9309", _group(nested), "/" + "a" * MIDDLE)
    yield Adversary("nested heads", "rfc9309", _group(f"{head}*b" for head in nested), "/" + "a" * MIDDLE)
    yield Adversary("nested ends", "google", _group(f"/*b{head[1:]}$" for head in nested), "/" + "a" * MIDDLE)
    delimiters = "/?" + ":" * (LONG - 2)
    yield Adversary("delimiters in a query", "rfc9309", _group(f"/*?*{word}:" for word in _WORDS), delimiters)
    halves = [":" + ":".join(word[at : at + 2] for word in _WORDS)[: LONG // 2 - 20] for at in (2, 0)]
    turned = (f"/*?*:{word[:2]}*{word[2:]}:" for word in _WORDS)
    yield Adversary("delimiters in the wrong order", "rfc9309", _group(turned), "/?" + ":".join(halves))
    octets = "/" + "éa" * (LONG // 3 - 1)
    for dialect in ("rfc9309", "google", "draft1996"):
        yield Adversary(f"{dialect}: octets to encode", dialect, _group(f"/é*{word}" for word in _WORDS), octets)


def _bent(random: Random) -> str:
    return "a" * random.randrange(11, 41) + "b" + "a" * random.randrange(1, 40)


def _globs() -> Iterator[Adversary]:
    for length in (SHORT, LONG):
        text = ("/" + "".join(_WORDS))[:length]
        shapes = (
            ("15,000 with marks", (f"/*?{word}*[0-9]" for word in _WORDS), text),
            ("15,000 that differ in sets", (f"/*[{word}][!{word}]*[{word}][0-9]" for word in _WORDS), text),
            (
                "30 lines of sets",
                ("/*" + "[ab]" * (4000 + line) + "[cd]" for line in range(30)),
                "/" + "ab" * (length // 2),
            ),
            (
                "30 lines of ?a",
                (f"/*[a-{last}]" + "?a" * 8000 + "[cd]" for last in ascii_lowercase),
                "/" + "a" * length,
            ),
        )
        random = Random(length)
        sets = [f"[a-{last}]" for last in "cdefghijklmnopqrstuvwxyz"]
        searched = (
            ("as many sets in 30 lines as fit", (_mixed(sets, random) for _ in range(30)), "/" + "ab" * (length // 2)),
            ("15,000 of sets in the wrong order", (f"/*[{word}]1*1[{word}]*" for word in _WORDS), f"/1b{text[3:-2]}a1"),
        )
        for name, patterns, path in shapes + searched:
            body = _group(patterns, "Robot-version: 2.0")
            yield Adversary(f"v2: {name}, path {length}", "v2", body, path[:length])
    # Of so many letters a place takes so many: the more it takes, the longer starts of a stretch are left.
    for letters, taken, negated, places in (
        (66, 40, False, 36),
        (66, 2, True, 600),
        (62, 7, False, 10),
        (8, 2, False, 20),
        (8, 6, False, 60),
    ):
        random = Random(f"{letters} {taken}")
        alphabet = (ascii_letters + digits + "._~-")[:letters]
        path = "/" + "".join(random.choices(alphabet, k=LONG - 1))
        stretches = (_taking(alphabet[:62], taken, negated, places, random) for _ in range(RULES))
        name = f"v2: {places} places that {'miss' if negated else 'take'} {taken} of {letters}"
        yield Adversary(name, "v2", _group((f"/*{it}*" for it in stretches), "Robot-version: 2.0"), path)
    random = Random(2)
    for two, marks in (("éè", ""), ("éè", "?"), ("$é", "")):
        octets = "".join(random.choices(two, k=LONG // 2 - 1))
        bent = (_bent_piece(octets, 60, marks, two, random) for _ in range(RULES))
        name = f"v2: texts of {two}{' with a mark' if marks else ''} that stand but for one character"
        yield Adversary(name, "v2", _group((f"/*{it}*" for it in bent), "Robot-version: 2.0"), f"/{octets}")


def _taking(alphabet: str, taken: int, negated: bool, places: int, random: Random) -> str:
    return "".join(f"[{'!' * negated}{''.join(random.sample(alphabet, taken))}]" for _ in range(places))


def _bent_piece(octets: str, length: int, marks: str, letters: str, random: Random) -> str:
    """A piece that stands but for its middle, with marks in it; two letters differ in nothing but one digit."""
    at = random.randrange(len(octets) - length)
    piece = octets[at : at + length]
    bent = letters.replace(piece[length // 2], "")
    return marks.join((piece[:20], piece[20 : length // 2], bent + piece[length // 2 + 1 :]))


def _sets_by_turns() -> Iterator[Adversary]:
    """Sets that each stand in every other part of the path, so that only what stands behind what tells."""
    first, second = ascii_lowercase[:13], ascii_lowercase[13:]
    for length, texts in product((SHORT, LONG), (False, True)):
        random = Random(length)

        def part(letters: str, mark: str, length: int = length, random: Random = random) -> str:
            return "".join(random.choice(letters) + mark + random.choice(first) for _ in range(length // 12))

        def stretch(letters: str, mark: str, texts: bool = texts, random: Random = random) -> str:
            return f"[{''.join(random.sample(letters, 4))}]{mark}{random.choice(first) if texts else ''}"

        parts = [part(second, "2"), part(first, "1"), part(second, "2"), part("03456789", "1")]
        patterns = (f"/*{stretch(first, '1')}*{stretch(second, '2')}*{stretch(first, '1')}*" for _ in range(RULES))
        body = _group(patterns, "Robot-version: 2.0")
        name = f"v2: 15,000 of sets{' and texts' * texts} by turns, path {length}"
        yield Adversary(name, "v2", body, "/" + "".join(parts)[: length - 1])
    rare = ascii_letters[1:] + digits
    random = Random(1)
    octets = ["a"] * (LONG - 3)
    for at, letter in zip(random.sample(range(len(octets)), 4 * len(rare)), 4 * rare, strict=True):
        octets[at] = letter
    lines = ("/*" + "".join(f"[!{random.choice(rare)}]" for _ in range(4000)) + "*!!*" for _ in range(32))
    body = _group(lines, "Robot-version: 2.0")
    yield Adversary("v2: 30 lines of sets that nearly everything is in", "v2", body, "/!!" + "".join(octets))


def _mixed(sets: list[str], random: Random) -> str:
    """A stretch that has to be searched for, with nothing in it that comes again."""
    return "/*" + "".join(random.choices(sets, k=3200)) + "[ab][cd]*"


def _files() -> Iterator[Adversary]:
    """Those that are slow to read; what is asked matters little."""
    groups = b"".join(b"User-agent:%b\nAllow:/\n\n" % word.encode() for word in _WORDS)
    agents = b"".join(b"User-agent:%b\n" % word.encode() for word in _WORDS) + b"Disallow:/\n"
    for dialect in ("rfc9309", "google", "seznam", "draft1996"):
        yield Adversary(f"{dialect}: 15,000 groups", dialect, groups, "/x")
        yield Adversary(f"{dialect}: 15,000 agents", dialect, agents, "/x")
    yield Adversary("groups of one agent", "rfc9309", b"User-agent:*\nAllow:/\n" * 25_000, "/x")
    yield Adversary("lines of one character", "rfc9309", b"a\n" * (BODY_LIMIT // 2), "/x")
    yield Adversary("empty lines", "draft1996", b"\n" * BODY_LIMIT, "/x")
    yield Adversary("unknown keys", "rfc9309", b"".join(b"%x:\n" % line for line in range(72_000)), "/x")
    yield Adversary("lines without a colon", "rfc9309", b"allow /\n" * (BODY_LIMIT // 8), "/x")
    yield Adversary("one line", "rfc9309", b"Allow:/" + b"a" * BODY_LIMIT, "/x")
    yield Adversary("octets 0 to 255", "rfc9309", bytes(range(256)) * (BODY_LIMIT // 256), "/x")


def adversaries() -> Iterator[Adversary]:
    """All of them, one at a time: together they are large."""
    yield from _stars()
    yield from _wrong_order()
    yield from _chains()
    yield from _texts()
    yield from _globs()
    yield from _sets_by_turns()
    yield from _files()
