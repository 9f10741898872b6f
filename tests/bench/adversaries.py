"""Slow files and paths: each attacks one step of parsing, compiling or deciding, up to its limits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, count, cycle, islice, pairwise, product
from random import Random
from string import ascii_letters, ascii_lowercase, digits

from robots_core.origin import URL_LIMIT
from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.agents import AGENT_LIMIT
from robots_core.robots.lines import LINE_LIMIT

RULES = 15_000
AGENTS = 16
"""Agents that one question may name."""

SHORT, LONG = 80, URL_LIMIT - len("http://a.example")
"""Lengths of a path; LONG is the longest that a URL can have."""

LETTERS = ascii_letters + digits + "-._~"


@dataclass(frozen=True, slots=True)
class Adversary:
    """A file, a path, agents that ask about it in turn, and the step that is meant to be slow.

    Names with commas between them are one agent that is looked up by each, in order.
    """

    name: str
    dialect: str
    body: bytes
    path: str = "/x"
    agents: tuple[str, ...] = ("ExampleBot",)


def group(patterns: Iterable[str], *above: str, size: int = BODY_LIMIT) -> bytes:
    """One group with these patterns, or as many of them as a file of `size` bytes can hold."""
    lines, taken = ["User-agent: *", *above], 100
    for pattern in patterns:
        taken += len(pattern.encode()) + len("Allow:\n")
        if taken > size:
            break
        lines.append(f"Allow:{pattern}")
    return "\n".join([*lines, ""]).encode()


def _rules(name: str, patterns: Iterable[str], path: str) -> Adversary:
    """A group of these patterns, read as RFC 9309 does."""
    return Adversary(name, "rfc9309", group(patterns), path)


def filled(period: str, size: int) -> str:
    """`period` repeated, cut to `size` bytes."""
    return (period * (size // len(period) + 1)).encode()[:size].decode(errors="ignore")


def _path(period: str, length: int = LONG, start: str = "/") -> str:
    return start + filled(period, length - len(start))


def _long(pattern: str) -> str:
    """A pattern repeated up to the longest line that is parsed."""
    return filled(pattern, LINE_LIMIT - len("Allow:"))


def _whole(lines: Iterable[str]) -> bytes:
    """As many of these lines as a file can hold."""
    text, size = list[str](), 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > BODY_LIMIT:
            break
        text.append(f"{line}\n")
    return "".join(text).encode()


@cache
def _words(length: int, letters: str = ascii_lowercase) -> list[str]:
    """All words of that length, shuffled, so that neighbours have little in common."""
    words = ["".join(word) for word in product(letters, repeat=length)]
    Random(length).shuffle(words)
    return words


_WORDS = [
    "".join(ascii_lowercase[number // 26**place % 26] for place in range(4))
    for number in Random(4).sample(range(26**4), RULES)
]
_TEXT = "".join(_WORDS)


def _prefixes() -> Iterator[Adversary]:
    """Prefixes of every path: sorted, searched, and linked to shorter ones."""
    nested = ["/" + "a" * length for length in range(1000)]
    same = "/" + "a" * 16_000
    for dialect in ("rfc9309", "draft1996"):
        yield Adversary(f"{dialect}: 1,000 nested prefixes", dialect, group(nested), _path("a"))
    yield _rules("1,000 nested prefixes, stars behind them", (f"{it}*b" for it in nested), _path("a"))
    yield _rules("30 prefixes of 16,000 that share all but the end", (f"{same}{n}" for n in range(30)), same)
    many = group(f"/{word}" for word in _words(3, LETTERS))
    yield Adversary("as many prefixes as fit", "draft1996", many, _path("a"))
    yield Adversary("one rule as often as fits", "rfc9309", group(["/"] * BODY_LIMIT))
    yield _rules("one rule with a star as often as fits", ["/*x"] * BODY_LIMIT, _path("a"))
    wide = (f"/{head}*{segment}" for segment in "xyz" for head in _words(3, LETTERS))
    yield _rules("prefixes of all letters, a segment each", wide, _path("ab"))


def _segments() -> Iterator[Adversary]:
    """Segments between stars: states, failure links, outputs and waiting patterns."""
    suffixes = ["a" * length for length in range(1, 1100)]
    absent = ["/*" + text + "*!" for text in suffixes]
    yield _rules("1,000 segments, each a suffix of the next", (f"/*{it}" for it in suffixes), _path("a"))
    yield _rules("the same, and a segment that is absent", absent, _path("a"))
    for most in (30, 120):
        # As often as the budget of steps allows.
        some = [f"/*{text}*!" for text in suffixes[:most]]
        repeated = (pattern + "a" * (at % 2) for at in count() for pattern in some)
        yield _rules(f"{most} suffixes, as many patterns as fit", repeated, _path("a"))
    anchored = [f"/*{text}*b$" for text in suffixes]
    yield Adversary("google: 1,000 suffixes, an end that is absent", "google", group(anchored), _path("a"))
    ends = [f"/*b{text}$" for text in suffixes]
    yield Adversary("google: 1,000 nested ends", "google", group(ends), _path("a"))
    waiting = [f"/*z*{word}" for word in _WORDS]
    yield _rules("15,000 patterns wait for the last character", waiting, _path("a", LONG - 1) + "z")
    same = [f"/*a*b*{word}" for word in _WORDS]
    yield _rules("15,000 patterns wait for the same segments", same, _path("ab"))
    for name, text in (("whole segments", "{}*{}"), ("one letter", "{:.1}*{:.1}*!"), ("the other order", "{1}*{0}*!")):
        pairs = zip(_WORDS, _WORDS[1:] + _WORDS[:1], strict=True)
        patterns = ["/*" + text.format(*pair) for pair in pairs]
        yield _rules(f"15,000 of two segments: {name}", patterns, ("/" + _TEXT)[:LONG])
    links = [f"/*{'a' * before}b{'a' * behind}" for before in range(41, 96) for behind in range(1, 99 - before)]
    yield _rules("segments that nearly match everywhere", links, _path("a" * 40 + "b"))
    deep = ("/*" + "a" * (8000 + line) + "b" for line in range(60))
    yield _rules("failure links of 8,000 states in a row", deep, _path("a" * 7999 + "c"))
    wide = ("/*" + first + second for first, second in product(map(chr, range(0x80, 0x100)), repeat=2))
    yield Adversary("google: every byte follows every other", "google", group(wide), _path("éèê"))
    siblings = (f"/*{one}{two}{three}" for one, two, three in product(LETTERS, repeat=3))
    yield _rules("66 siblings at every state", siblings, _path("".join(reversed(LETTERS))))
    random = Random(1)
    path = "/" + "".join(random.choices("ab", k=LONG - 1))
    two = ("".join(random.choices("ab", k=random.randrange(12, 40))) for _ in count())
    yield _rules("random segments of two letters", (f"/*{it}" for it in two), path)
    letters = "".join(_words(3, "abcdefghijklmnopqrstuvwxy"))[: LONG - 1]
    every = ("*" + letters[at : at + 3] for at in range(len(letters) - 2))
    yield _rules("15,000 segments that all match", every, "/" + letters)


def _stars() -> Iterator[Adversary]:
    """Patterns of thousands of stars, each of which may match at every place."""
    random = Random(2)
    for letters, name in (("a", "one letter"), ("ab", "two letters")):
        path = "/" + "".join(random.choices(letters, k=LONG - 1))
        lines = ["/" + _long("".join(f"*{random.choice(letters)}" for _ in range(8400)))[1:] for _ in range(40)]
        yield _rules(f"30 rules of 8,000 stars, {name}", lines, path)
        yield Adversary(f"google: 30 rules of 8,000 stars, {name}", "google", group(lines), path)
    for segments, width in ((2000, 1), (400, 2), (100, 8), (20, 3)):
        path = "".join(random.choices(LETTERS, k=LONG - 1))
        chains = (f"/*{_chain(path, segments, width, random)}*!!" for _ in count())
        name = f"as many as fit of {segments} segments of {width} all along the path"
        yield _rules(name, chains, f"/{path}")
    yield _rules("only stars", [_long("*")] * 30, _path("a"))


def _chain(path: str, segments: int, width: int, random: Random) -> str:
    """Successive segments that cover `path`, with stars between them."""
    gap = (len(path) - segments * width) / segments
    starts = (int(at * (width + gap) + gap * random.random()) for at in range(segments))
    return "*".join(path[start : start + width] for start in starts)


def _escapes() -> Iterator[Adversary]:
    """Percent-encoded bytes in paths and patterns, and the second form of a query."""
    for dialect in ("rfc9309", "google", "seznam", "draft1996", "v2"):
        wide = group((f"/é*{word}" for word in _WORDS), *["Robot-version: 2.0"] * (dialect == "v2"))
        yield Adversary(f"{dialect}: a path to encode", dialect, wide, "/" + filled("éa", LONG - 1))
        escapes = [f"/{number}" + _long("%61%c3%2f") for number in range(40)]
        path = _path("%c3%61%3a", start="/?")
        yield Adversary(f"{dialect}: patterns and a path to decode", dialect, group(escapes), path)
    delimiters = "/?" + ":" * (LONG - 2)
    yield _rules("both forms of a query, 15,000 patterns", (f"/*?*{word}:" for word in _WORDS), delimiters)
    suffixes = (f"/*?*{':' * length}*!" for length in range(1, 1000))
    yield _rules("both forms of a query, each a suffix of the next", suffixes, delimiters)
    turned = (f"/*?*:{word[:2]}*{word[2:]}:*!" for word in _WORDS)
    text = ":" + ":".join(word[at : at + 2] for at in (2, 0) for word in _WORDS)
    yield _rules("both forms of a query in the wrong order", turned, ("/?" + text)[:LONG])
    pages = (f"*{word}/index.htm" for word in _WORDS)
    yield Adversary("google: index pages", "google", group(pages), _path("/".join(_WORDS)))


def _globs() -> Iterator[Adversary]:
    """Version 2.0, where a glob may go back to its last star."""
    texts = (
        ("one glob that backtracks", ["/*" + "a" * 8000 + "b"], _path("a")),
        ("30 globs that backtrack", ["/*" + "a" * 4000 + f"b{number}" for number in range(30)], _path("a")),
        ("15,000 globs that backtrack", [f"/*aaaaaaa{word}*" for word in _WORDS], _path("a")),
        ("15,000 sets, a short path", [f"/*[{word}][!{word}]*[{word}][0-9]" for word in _WORDS], ("/" + _TEXT)[:SHORT]),
        ("15,000 sets", [f"/*[{word}][!{word}]*[{word}][0-9]" for word in _WORDS], ("/" + _TEXT)[:LONG]),
        ("30 globs of ?a", ["/*" + "?a" * 8000 + f"[{number}]" for number in range(30)], _path("a")),
        ("30 globs of sets", ["/*" + "[ab]" * 4000 + f"{number}" for number in range(30)], _path("ab")),
        ("stars all along", ["/" + "*a" * 8000 + "b"] * 30, _path("a")),
        ("brackets that no bracket closes", ["/" + "[" * 16_000] * 30, _path("[")),
        ("as many as fit that fail at once", ["x*"] * BODY_LIMIT, _path("a")),
    )
    for name, patterns, path in texts:
        yield Adversary(f"v2: {name}", "v2", group(patterns, "Robot-version: 2.0"), path)


def _agents() -> Iterator[Adversary]:
    """Many groups, many agents, and long names to search for."""
    path = ("/" + _TEXT)[:LONG]
    names = tuple(_WORDS[:101])
    agents = [f"User-agent:{word}" for word in _words(4)]
    for dialect in ("rfc9309", "google", "seznam", "draft1996"):
        yield Adversary(f"{dialect}: 34,000 agents", dialect, _whole([*agents[:33_900], "Disallow:/"]))
        groups = (f"User-agent:{word}\nAllow:/\n" for word in _words(4))
        yield Adversary(f"{dialect}: 18,000 groups", dialect, _whole(groups), path, names)
    merged = _whole(["User-agent:*\nAllow:/"] * BODY_LIMIT)
    yield Adversary("24,000 groups of one agent", "rfc9309", merged)
    version = _whole(["User-agent:*\nRobot-version:2.0\nAllow:/"] * BODY_LIMIT)
    yield Adversary("v2: 12,000 groups of one agent", "v2", version)
    own = (f"User-agent:{word}\nAllow:/*{word}" for word in _WORDS)
    yield Adversary("15,000 agents ask in turn", "rfc9309", _whole(own), path, names)
    # Shared rules are compiled again for each agent, since each also has rules of its own.
    listed = [f"User-agent:{word}\nAllow:/{word}" for word in names] + [f"User-agent:{word}" for word in names]
    pairs = zip(_WORDS, _WORDS[::-1], strict=True)
    shared = _whole([*listed, *(f"Allow:/*{first}*{second}" for first, second in pairs)])
    yield Adversary("15,000 rules shared by 101 agents with one of their own", "rfc9309", shared, path, names)
    near = ",".join("a" * before + "b" + "a" * (AGENT_LIMIT - 16) for before in range(AGENTS))
    for name, line in (("b last", "a" * 16_000), ("halves everywhere", "a" * 1020 + "b" + "a" * 990)):
        lines = _whole(f"User-agent:{line}{number}\nAllow:/" for number in count())
        yield Adversary(f"draft1996: {AGENTS} agents of 2,048 at once, {name}", "draft1996", lines, "/x", (near,))
    several = ",".join("a" * (AGENT_LIMIT - 20) + str(number) for number in range(AGENTS))
    yield Adversary(f"{AGENTS} agents of 2,048 at once", "rfc9309", _whole(agents), "/x", (several,))


def _members() -> Iterator[Adversary]:
    """Lines other than rules: rates, windows, usage."""
    minutes = [f"{minute // 60:02}{minute % 60:02}" for minute in range(1440)]
    following = islice(cycle(pairwise([*minutes, minutes[0]])), 49_999)
    values: dict[str, Iterator[str]] = {
        "Crawl-delay:{}": map(str, count()),
        "Visit-time:{}": (f"{one}-{two}" for two in minutes for one in minutes),
        "Request-rate:1/{}": (f"{at} {minutes[at % 1440]}-{minutes[-at % 999]}" for at in count(1)),
        "Request-rate:1/{} of a minute": (f"{50_000 - at} {one}-{two}" for at, (one, two) in enumerate(following)),
        "Content-Usage:{}": (f"/{word} train-ai=n" for word in _words(4)),
        "Content-Usage:{}=n, of their own": (f"/{at} a{at}" for at in count()),
        "Content-Usage:{} structured": (f"/{at} a{at}=n;b=1.5;c=?0;d=:YQ==:, e=(1 2)" for at in count()),
        "Content-Usage:{} on long lines": (f"/{at} " + ",".join(f"a{n}=(y)" for n in range(2000)) for at in count()),
        "Content-Usage:{} wildcards": (f"/*{word} train-ai=n" for word in _words(4)),
        "Content-Signal:{}=no": iter(_words(4)),
        "Content-Signal:{} on long lines": (",".join(f"{at}a{n}=no" for n in range(2000)) for at in count()),
        "DisallowAITraining:{}": (f"/*{word}" for word in _words(4)),
    }
    names = tuple(_WORDS[:101])
    for line, of_line in values.items():
        written = (line.partition(" ")[0].format(value) for value in of_line)
        body = _whole(chain(["User-agent: *"], written))
        yield Adversary(f"as many as fit of {line}", "rfc9309", body, _path("a"))
    parted = [f"User-agent:{name}\nCrawl-delay:{at}" for at, name in enumerate(names)]
    body = _whole(chain(parted, (f"Request-rate:1/{at} {minutes[at % 1440]}-0000" for at in count(1))))
    yield Adversary("as many rates as fit, asked by 101 agents", "seznam", body, "/x", names)


def _lines() -> Iterator[Adversary]:
    """Files that are slow to parse, whatever the question."""
    for dialect in ("rfc9309", "google"):
        yield Adversary(f"{dialect}: 70,000 rules", dialect, b"User-agent:*\n" + b"Allow:/\n" * 63_900)
        unknown = _whole(f"{line:x}:" for line in range(90_000))
        yield Adversary(f"{dialect}: 70,000 unknown keys", dialect, unknown)
        yield Adversary(f"{dialect}: 64,000 lines without a colon", dialect, b"allow /\n" * (BODY_LIMIT // 8))
        yield Adversary(f"{dialect}: keys that begin like others", dialect, b"user-agents: a\n" * 34_000)
    yield Adversary("lines of one character", "rfc9309", b"a\n" * (BODY_LIMIT // 2))
    yield Adversary("empty lines between rules", "draft1996", b"User-agent:*\n" + b"Allow:/\n\n" * 56_000)
    yield Adversary("empty lines", "draft1996", b"\n" * BODY_LIMIT)
    yield Adversary("one line", "rfc9309", b"Allow:/" + b"a" * BODY_LIMIT)
    yield Adversary("sitemaps", "rfc9309", _whole(f"Sitemap:a://{number}" for number in count()))
    yield Adversary("bytes 0 to 255", "rfc9309", bytes(range(256)) * (BODY_LIMIT // 256))
    yield Adversary("UTF-16", "rfc9309", "\ufeffUser-agent:*\nAllow:/\n".encode("utf-16-le") * 11_000)


def adversaries() -> Iterator[Adversary]:
    """Yield all of them, one at a time, since together they are large."""
    yield from _prefixes()
    yield from _segments()
    yield from _stars()
    yield from _escapes()
    yield from _globs()
    yield from _agents()
    yield from _members()
    yield from _lines()
