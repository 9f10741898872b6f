"""Files and paths made to be slow: each aims at one step of reading, compiling or deciding, as far as its limits go."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from string import ascii_letters, ascii_lowercase, digits

from app.origin import URL_LIMIT
from app.robots.access import BODY_LIMIT
from app.robots.paths import rfc_subject
from app.robots.syntax import LINE_LIMIT

RULES = 15_000
SHORT, MIDDLE, LONG = 80, 2000, URL_LIMIT - len("http://a.example")
"""Lengths of a path; LONG is the longest that a URL can have."""


@dataclass(frozen=True, slots=True)
class Adversary:
    """A file, a path to ask it about, who asks in turn, and what is meant to be slow about them.

    Names with commas between them are one agent that is looked up by each, in order.
    """

    name: str
    dialect: str
    body: bytes
    path: str
    agents: tuple[str, ...] = ("ExampleBot",)


def group(patterns: Iterable[str], *above: str, octets: int = BODY_LIMIT) -> bytes:
    """One group with these patterns, or as many of them as a file of so many octets can hold."""
    lines, size = ["User-agent: *", *above], 100
    for pattern in patterns:
        size += len(pattern.encode()) + len("Allow:\n")
        if size > octets:
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
    yield Adversary("one rule of 8,000 stars", "rfc9309", group(_lines([f"/{many}"])), "/" + "a" * (LONG - 1))
    random = Random(1)
    lines = _lines("/b" + "".join(f"*{random.choice('ab')}" for _ in range(LINE_LIMIT)) for _ in range(40))
    yield Adversary("30 rules of 8,000 stars", "rfc9309", group(lines), "/b" + "ab" * (LONG // 2 - 2))
    for length in (SHORT, MIDDLE, LONG):
        path = "/shared/head/" + "".join(word[:3] for word in _WORDS)
        shared = group(f"/shared/head/*{word}*!" for word in _WORDS)
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
        yield Adversary(name, "rfc9309", group(patterns), f"/{first}{second}")


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
        yield Adversary(name, "rfc9309", group(patterns), f"/!!{path}")
    for texts, behind in product((20, 128, 400), (False, True)):
        random = Random(texts)
        path = "".join(random.choices(letters, k=LONG - 6))
        begin = "*?:*!*" if behind else "*!*"
        patterns = (f"{begin}{_chain(path, texts, 1, random, absent=texts - 1)}" for _ in range(RULES))
        name = f"{texts} texts of 1, the last of which does not stand{', behind a delimiter' * behind}"
        yield Adversary(name, "rfc9309", group(patterns), ("/?:!" if behind else "/!") + path)
    for texts in (2, 5):
        random = Random(texts)
        quarters = ["".join(random.choices(letters, k=LONG // 4)) for _ in range(2)]
        patterns = ("/*" + "*".join(_piece(quarters[text % 2], random) for text in range(texts)) for _ in range(50_000))
        path = "/" + (quarters[1] + quarters[0]) * (1 if texts == 2 else 2)
        yield Adversary(f"as many as a file holds of {texts} texts by turns", "rfc9309", group(patterns), path[:LONG])


def _chain(path: str, texts: int, width: int, random: Random, *, absent: int | None = None) -> str:
    """Pieces of `path`, one behind the other and over all of it, with stars between them; one is none, the middle one
    or that which is said.
    """
    gap = (len(path) - 1 - texts * width) / texts
    begins, at = [], 0.0
    for _ in range(texts):
        begins.append(int(at))
        at += width + gap * random.random()
    pieces = [path[begin : begin + width] for begin in begins]
    pieces[texts // 2 if absent is None else absent] = "!!"
    return "*".join(pieces)


def _cut(path: str, random: Random) -> str:
    at = random.randrange(len(path) - 4)
    return path[at : at + random.randrange(1, 5)]


def _piece(path: str, random: Random) -> str:
    at = random.randrange(len(path) - 4)
    return path[at : at + random.randrange(2, 5)]


def _texts() -> Iterator[Adversary]:
    runs = ((before, behind) for before in range(41, 96) for behind in range(1, 99 - before))
    near = group(f"/*{'a' * before}b{'a' * behind}" for before, behind in runs)
    path = "/" + ("a" * 40 + "b") * (LONG // 41)
    yield Adversary(f"texts that nearly match everywhere, path {len(path)}", "rfc9309", near, path)
    random = Random(100)
    many = ("/*" + "*".join(_bent(random) for _ in range(100)) + "*c" for _ in range(200))
    yield Adversary("100 texts each that nearly match everywhere", "rfc9309", group(many), f"/c{path[1:-2]}")
    few = (f"/*{'a' * before}ba" for before in range(86, 98))
    yield Adversary("12 texts that nearly match everywhere", "rfc9309", group(few), "/" + "a" * (LONG - 1))
    nested = ["/" + "a" * length for length in range(1, 1100)]
    yield Adversary("nested prefixes", "rfc9309", group(nested), "/" + "a" * MIDDLE)
    yield Adversary("nested heads", "rfc9309", group(f"{head}*b" for head in nested), "/" + "a" * MIDDLE)
    yield Adversary("nested ends", "google", group(f"/*b{head[1:]}$" for head in nested), "/" + "a" * MIDDLE)
    delimiters = "/?" + ":" * (LONG - 2)
    yield Adversary("delimiters in a query", "rfc9309", group(f"/*?*{word}:" for word in _WORDS), delimiters)
    halves = [":" + ":".join(word[at : at + 2] for word in _WORDS)[: LONG // 2 - 20] for at in (2, 0)]
    turned = (f"/*?*:{word[:2]}*{word[2:]}:" for word in _WORDS)
    yield Adversary("delimiters in the wrong order", "rfc9309", group(turned), "/?" + ":".join(halves))
    octets = "/" + "éa" * (LONG // 3 - 1)
    for dialect in ("rfc9309", "google", "draft1996"):
        yield Adversary(f"{dialect}: octets to encode", dialect, group(f"/é*{word}" for word in _WORDS), octets)


def _bent(random: Random) -> str:
    return "a" * random.randrange(11, 41) + "b" + "a" * random.randrange(1, 40)


def _near() -> Iterator[Adversary]:
    """Both ends of every text stand all over the path, and no text does: only the two together tell."""
    for letters, order, length in (("ab", 8, 15), ("ab", 6, 9), ("abcd", 4, 7), ("$é", 6, 11), ("éè", 7, 10)):
        period = cycle(letters, order)
        path = "/" + fill(period, LONG - 1)
        random = Random(order)
        texts = (text for text in _random_texts(letters, length, random) if text not in path)
        name = f"texts of {length} from {letters}, all of {order} in the path, path {len(rfc_subject(path))}"
        yield Adversary(name, "rfc9309", group(f"/*{text}" for text in texts), path)
    random = Random(2)
    path = "/" + "".join(random.choices("ab", k=LONG - 1))
    texts = ("".join(random.choices("ab", k=random.randrange(12, 40))) for _ in range(RULES))
    yield Adversary("random texts of two letters", "rfc9309", group(f"/*{text}" for text in texts), path)
    cuts = (sorted(random.sample(range(len(path) - 40), 2)) for _ in range(RULES))
    texts = (path[late : late + 20] + path[early : early + random.randrange(5, 20)] for early, late in cuts)
    yield Adversary("texts whose halves stand in the path", "rfc9309", group(f"/*{text}" for text in texts), path)
    # As written, with the path's query escaped, and with the pattern's own too: each has to be looked for.
    for letters, order, length in (("ab", 8, 15), ("éè", 7, 10)):
        path = "/?:" + fill(cycle(letters, order), LONG - 3)
        texts = (text for text in _random_texts(letters, length, Random(order)) if text not in path)
        name = f"the same behind a query's delimiter, path {len(rfc_subject(path))}"
        yield Adversary(name, "rfc9309", group(f"*?:*{text}" for text in texts), path)


def _late() -> Iterator[Adversary]:
    """A text that all share stands at the very end, and is asked for from every place."""
    letters = "".join(sorted(set(ascii_letters + digits) - set("abcd")))
    names = ["".join(pair) for pair in product(letters, repeat=2)]
    for shared, between, name in (
        ("aab", "aacab", "whose ends stand everywhere"),
        ("aaaaaaaabaaa", "aaaaaaaacaaaabaaac", "of 12, whose ends stand everywhere"),
        ("d", "c", "of one letter"),
    ):
        random = Random(len(shared))
        texts = random.choices(names, k=LONG // (len(between) + 2) - 100)
        body, tail = between.join(texts), shared * (200 // len(shared))
        patterns = (f"*{random.choice(texts)}*{shared}*{random.choice(texts)}" for _ in range(50_000))
        yield Adversary(f"a text at the end {name}", "rfc9309", group(patterns), f"/{body}{tail}")
        # Whoever remembers of a text where it stood last is asked for the other place each time.
        half = len(body) // 2
        twice = (f"*{shared}*{shared}*{random.choice(texts)}*{random.choice(texts)}" for _ in range(50_000))
        path = f"/{body[:half]}{shared}{body[half:]}{shared}"
        yield Adversary(f"a text in the middle and at the end {name}", "rfc9309", group(twice), path)
    # The same where three characters are written for an octet, as written and behind a query's delimiter.
    shared, between = "$$$$$$$$é$$$", "$$$$$$$$é*è$$$$$$$é$$$*"
    for begin, head in (("/", ""), ("/?:", "*?:")):
        random = Random(6)
        texts = random.choices(names, k=560)
        parts = [between.join(["", *texts[at : at + 280], shared]) for at in (0, 280)]
        twice = (f"{head}*{shared}*{shared}*{random.choice(texts)}*{random.choice(texts)}" for _ in range(50_000))
        path = begin + "".join(parts)
        name = f"a text of octets in the middle and at the end{', behind a delimiter' * bool(head)}"
        yield Adversary(f"{name}, path {len(rfc_subject(path))}", "rfc9309", group(twice), path)


def _lengths() -> Iterator[Adversary]:
    """Texts of many lengths, each of which is searched for in another way."""
    random = Random(3)
    halves = ["".join(random.choices(letters, k=LONG // 2 - 1)) for letters in ("abcdefgh", "ijklmnop")]

    def text(half: str, length: int) -> str:
        at = random.randrange(len(half) - length + 1)
        return half[at : at + length]

    for name, lengths in (
        ("1 to 64", range(1, 65)),
        ("1, 2, 4 to 4,096", [1 << power for power in range(13)]),
    ):
        # Nothing to the right of the first text is of the second one's letters.
        patterns = (f"/*{text(halves[1], random.choice(lengths))}*{text(halves[0], 3)}" for _ in range(RULES))
        yield Adversary(f"texts of {name} octets in the wrong order", "rfc9309", group(patterns), "/" + "".join(halves))
    rising = (
        f"/*{text(halves[1], 1 + number % 40)}*{text(halves[0], 1 + number // 40 % 40)}" for number in range(RULES)
    )
    yield Adversary("texts of 40 lengths, path 80", "rfc9309", group(rising), f"/{halves[0][:39]}{halves[1][:40]}")
    # As searches for each alone would have it: a few patterns, and a long text that is nearly everywhere.
    few = (f"/*{'a' * before}b{'a' * (240 - before)}*c" for before in range(100, 112))
    path = "/" + fill("a" * 239 + "b" + "a" * 127 + "b", LONG - 1)
    yield Adversary("12 texts of 241 that nearly match everywhere", "rfc9309", group(few), path)


def _octets() -> Iterator[Adversary]:
    """Octets that are written as three characters, in the path or in the patterns."""
    random = Random(4)
    path = "".join(random.choices("éèêë", k=LONG // 2 - 3))
    spelt = rfc_subject(path)
    for texts, width in ((20, 3), (100, 8), (400, 2)):
        patterns = (f"/*{_chain(spelt, texts, width, random)}" for _ in range(BODY_LIMIT // (texts * (width + 1))))
        name = f"as many as fit of {texts} texts of {width}, cut within escapes"
        yield Adversary(name, "rfc9309", group(patterns), f"/!!{path}")
    # Of every width at once, at every offset.
    few = cycle("$é", 12)
    marked = (few[at : at + 4] + "".join(random.choices(digits + ascii_letters, k=2)) for at in range(0, len(few), 4))
    path = fill("".join(marked), LONG - 3)
    for begin, head in (("/", ""), ("/?:", "*?:")):
        pairs = ("*".join(f"{_cut(path, random)}{_cut(path, random)}*!!" for _ in range(2)) for _ in range(RULES))
        name = f"escapes in texts of all widths{', behind a delimiter' * bool(head)}"
        yield Adversary(name, "rfc9309", group(f"{head}*{pair}" for pair in pairs), begin + path)
    blanks = "/" + " $" * (LONG // 2 - 1)
    lines = _lines(f"/{number}" + "*%20*$" * LINE_LIMIT for number in range(40))
    yield Adversary("30 rules of escapes and stars", "rfc9309", group(lines), "/1" + blanks)
    heads = ["/" + "$" * length for length in range(1, 1100)]
    yield Adversary("nested heads of escapes", "rfc9309", group(f"{head}*$!" for head in heads), "/" + "$" * (LONG - 1))
    escapes = _lines(f"/{number}" + "%61%c3%2f" * 2000 for number in range(40))
    yield Adversary("escapes to read", "rfc9309", group(escapes), "/?" + "%c3%61%3a" * (LONG // 9))
    raw = _lines(f"/{number}" + "éa" * 4000 for number in range(40))
    yield Adversary("octets to escape", "rfc9309", group(raw), "/?" + "é:" * (LONG // 3 - 1))
    decoded = ["%61%c3%2f" * (LONG // 9) for _ in range(30)]
    yield Adversary("draft1996: escapes to read", "draft1996", group(f"/{text}" for text in decoded), f"/{decoded[0]}")


def _many() -> Iterator[Adversary]:
    """As many rules as a file can hold, few or all of which match."""
    words = cycle("abcdefghijklmnopqrstuvwxy", 3) + "aa"
    every = ["*" + words[at : at + 3] for at in range(len(words) - 2)]
    yield Adversary("15,625 texts that all match", "rfc9309", group(every), "/" + words)
    random = Random(5)
    ordered = [sorted(random.sample(range(400), 2)) for _ in range(RULES)]
    pairs = [f"{words[at : at + 2]}:" for at in range(400)]
    twos = (f"*?*{pairs[first]}*{pairs[second]}" for first, second in ordered)
    yield Adversary("15,000 of two texts that all match in a query", "rfc9309", group(twos), "/?" + "".join(pairs))
    yield Adversary("one rule as often as fits", "rfc9309", group(["*"] * BODY_LIMIT), "/x")
    yield Adversary("one rule behind a query as often as fits", "rfc9309", group(["*?:"] * BODY_LIMIT), "/?::")
    threes = ("".join(word) for word in product(ascii_letters + digits, repeat=3))
    yield Adversary("as many prefixes as fit", "draft1996", group(f"/{word}" for word in threes), "/x" + "a" * LONG)
    pages = (f"*{word}/index.htm" for word in _WORDS)
    yield Adversary("google: index pages", "google", group(pages), ("/" + "/".join(_WORDS))[: LONG - 1] + "/")


def _agents() -> Iterator[Adversary]:
    """Files whose groups are many, asked by many."""
    each = b"".join(b"User-agent:*\nAllow:/*%b\n" % word.encode() for word in _WORDS)
    yield Adversary(
        "15,000 groups of one agent, a wildcard in each", "rfc9309", each, "/" + "".join(_WORDS)[: LONG - 1]
    )
    own = b"".join(b"User-agent:%b\nAllow:/*%b\n" % (word.encode(), word.encode()) for word in _WORDS)
    names = tuple(_WORDS[:100])
    yield Adversary("15,000 agents, who ask in turn", "rfc9309", own, "/" + "".join(_WORDS)[: LONG - 1], names)
    # What all share has to be compiled for each anew, since each has something of its own beside it.
    listed = "".join(f"User-agent:{word}\n" for word in names)
    beside = "".join(f"User-agent:{word}\nAllow:/{word}\n" for word in names)
    shared = "".join(f"Allow:/*{first}*{second}\n" for first, second in zip(_WORDS, _WORDS[::-1], strict=True))
    body = f"{beside}{listed}{shared}".encode()
    path = "/" + "".join(_WORDS)[: LONG - 1]
    yield Adversary("15,000 rules for 100 agents, each with one of its own", "rfc9309", body, path, names)
    lines = _lines("a" * LINE_LIMIT for _ in range(40))
    near = b"".join(b"User-agent:%b\nAllow:/%d\n" % (line.encode(), at) for at, line in enumerate(lines) if at < 30)
    nearly = ["a" * before + "b" + "a" * 1000 for before in range(1000, 1016)]
    for several in (nearly[:1], nearly):
        name = f"draft1996: {len(several)} agents at once that nearly stand everywhere"
        yield Adversary(name, "draft1996", near, "/x", (",".join(several),))
    # Every three characters of the names stand, and all but one of a name behind one another.
    lines = _lines(f"{'a' * 800}b{'a' * 900}" for _ in range(280))
    near = b"".join(b"User-agent:%b\nAllow:/%d\n" % (line.encode(), at) for at, line in enumerate(lines))
    nearly = ["a" * before + "b" + "a" * before for before in range(1000, 1016)]
    name = "draft1996: 16 agents at once whose halves stand everywhere"
    yield Adversary(name, "draft1996", near, "/x", (",".join(nearly),))


def _members() -> Iterator[Adversary]:
    """Lines beside the rules, which state terms: those of more agents than whose terms are kept."""
    names = tuple(_WORDS[:101])
    listed = "".join(f"User-agent:{name}\n" for name in names)
    minutes = [f"{minute // 60:02}{minute % 60:02}" for minute in range(1440)]
    for key, values in (
        ("Crawl-delay", (str(number) for number in range(50_000))),
        ("Visit-time", (f"{minutes[number % 1440]}-{minutes[number // 1440]}" for number in range(50_000))),
        (
            "Request-rate",
            (f"1/{number} {minutes[number % 1440]}-{minutes[::-1][number % 999]}" for number in range(50_000)),
        ),
        ("Content-Usage", (f"/{word} train-ai=n" for word in _WORDS)),
        ("Content-Usage of their own", (f"/{number} a{number}=n" for number in range(50_000))),
        ("Content-Signal", (f"{word}=no" for word in _WORDS)),
        # Each decides in a minute of its own, or would, were it not for those that come later.
        (
            "Request-rate of a minute",
            (f"1/{50_000 - at} {minutes[at % 1440]}-{minutes[-~at % 1440]}" for at in range(50_000)),
        ),
    ):
        lines = [f"{key.split()[0]}:{value}\n" for value in values]
        body = (listed + "".join(lines))[:BODY_LIMIT].rpartition("\n")[0].encode()
        yield Adversary(f"as many of {key} as fit", "rfc9309", body, "/x", names)
        # To each agent another part of them is said: none has terms that another has.
        parted = "".join(f"User-agent:{agent}\n{line}" for agent, line in zip(names, lines, strict=False))
        body = (parted + "".join(lines[len(names) :]))[:BODY_LIMIT].rpartition("\n")[0].encode()
        yield Adversary(f"as many of {key} as fit, between the agents", "rfc9309", body, "/x", names)
    above = "".join(f"User-agent:{word}\n" for word in _words(4)[:30_000]) + "Crawl-delay:1\n"
    yield Adversary("30,000 agents above a delay", "rfc9309", above.encode(), "/x", tuple(_words(4)[29_900:30_000]))


def cycle(letters: str, length: int) -> str:
    """What, read around, holds every word of `length` of these letters once (a de Bruijn sequence)."""
    text = letters[0] * (length - 1)
    seen: set[str] = set()
    found: list[str] = []
    while True:
        words = (text + letter for letter in reversed(letters))
        word = next((word for word in words if word not in seen), None)
        if word is None:
            return "".join(found)
        seen.add(word)
        found.append(word[-1])
        text = word[1:]


def fill(period: str, octets: int) -> str:
    """`period` again and again, as far as so many octets go."""
    return (period * (octets // len(period) + 1)).encode()[:octets].decode(errors="ignore")


def _random_texts(letters: str, length: int, random: Random) -> Iterator[str]:
    while True:
        yield "".join(random.choices(letters, k=length))


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
            body = group(patterns, "Robot-version: 2.0")
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
        yield Adversary(name, "v2", group((f"/*{it}*" for it in stretches), "Robot-version: 2.0"), path)
    random = Random(2)
    for two, marks in (("éè", ""), ("éè", "?"), ("$é", "")):
        octets = "".join(random.choices(two, k=LONG // 2 - 1))
        bent = (_bent_piece(octets, 60, marks, two, random) for _ in range(RULES))
        name = f"v2: texts of {two}{' with a mark' if marks else ''} that stand but for one character"
        yield Adversary(name, "v2", group((f"/*{it}*" for it in bent), "Robot-version: 2.0"), f"/{octets}")


def _taking(alphabet: str, taken: int, negated: bool, places: int, random: Random) -> str:
    return "".join(f"[{'!' * negated}{''.join(random.sample(alphabet, taken))}]" for _ in range(places))


def _bent_piece(octets: str, length: int, marks: str, letters: str, random: Random) -> str:
    """A piece that stands but for its middle, with marks in it."""
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
        body = group(patterns, "Robot-version: 2.0")
        name = f"v2: 15,000 of sets{' and texts' * texts} by turns, path {length}"
        yield Adversary(name, "v2", body, "/" + "".join(parts)[: length - 1])
    rare = ascii_letters[1:] + digits
    random = Random(1)
    octets = ["a"] * (LONG - 3)
    for at, letter in zip(random.sample(range(len(octets)), 4 * len(rare)), 4 * rare, strict=True):
        octets[at] = letter
    lines = ("/*" + "".join(f"[!{random.choice(rare)}]" for _ in range(4000)) + "*!!*" for _ in range(32))
    body = group(lines, "Robot-version: 2.0")
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
    yield from _near()
    yield from _late()
    yield from _lengths()
    yield from _octets()
    yield from _many()
    yield from _globs()
    yield from _sets_by_turns()
    yield from _agents()
    yield from _members()
    yield from _files()
