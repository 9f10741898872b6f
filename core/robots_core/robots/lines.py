"""Scan a robots.txt into lines of key and value, the same for every dialect (RFC 9309 2.2, spec B, K1, K2)."""

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from robots_core.robots._native.scanning import Lines as Lines
from robots_core.robots._native.scanning import Scanner
from robots_core.robots.access import BODY_LIMIT, readable_part

LINE_LIMIT: Final = 16_663
"""Bytes of a line that are read. The rest is dropped; the part that was read still counts (spec B7)."""

BLANKS: Final = b" \t\v\f"
"""White space around keys and values (spec B4)."""


class Key(StrEnum):
    """The keys that some dialect or report uses; BLANK is an empty line (spec B6, G, I)."""

    UNKNOWN = "?"
    BLANK = ""
    USER_AGENT = "user-agent"
    DISALLOW = "disallow"
    ALLOW = "allow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    VISIT_TIME = "visit-time"
    ROBOT_VERSION = "robot-version"
    CONTENT_SIGNAL = "content-signal"
    CONTENT_USAGE = "content-usage"
    DISALLOW_AI_TRAINING = "disallowaitraining"
    ALLOW_AI_TRAINING = "allowaitraining"
    NOINDEX = "noindex"
    COMMENT = "comment"
    LICENSE = "license"
    HOST = "host"
    CLEAN_PARAM = "clean-param"
    # Statements that no robot obeys; they are only reported (spec G, I7).
    NOFOLLOW = "nofollow"
    NOARCHIVE = "noarchive"
    LLM_POLICY = "llm-policy"
    LLMS = "llms"
    SCHEMAMAP = "schemamap"
    TDM_RESERVATION = "tdm-reservation"
    TDM_POLICY = "tdm-policy"
    PERMITS = "permits"
    PROHIBITS = "prohibits"
    COMPENSATION = "compensation"
    STANDARD = "standard"
    CRAWL_RATE = "crawl-rate"
    CACHE_DELAY = "cache-delay"
    INDEXPAGE = "indexpage"
    REVISIT_AFTER = "revisit-after"
    DOMAIN = "domain"


class Form(IntEnum):
    """How a key is spelled. Only some robots accept TOLERATED, and only Google's parser accepts BY_PREFIX."""

    PROPER = 0
    TOLERATED = 1
    """A misspelling from the closed list of spec B6, or a key without a colon (spec B5)."""
    BY_PREFIX = 2
    """The key begins with the name of another key (spec B6)."""


RULE_KEYS: Final = frozenset({Key.ALLOW, Key.DISALLOW})

AI_TRAINING_KEYS: Final = frozenset({Key.DISALLOW_AI_TRAINING, Key.ALLOW_AI_TRAINING})
"""Statements about AI training. They are not rules, and do not end a run of User-agent lines (spec I5)."""

MEMBER_KEYS: Final = (
    frozenset(
        {
            Key.CRAWL_DELAY,
            Key.REQUEST_RATE,
            Key.VISIT_TIME,
            Key.ROBOT_VERSION,
            Key.CONTENT_SIGNAL,
            Key.CONTENT_USAGE,
            Key.NOINDEX,
            Key.COMMENT,
        }
    )
    | AI_TRAINING_KEYS
)
"""Keys that belong to a group besides its rules; Sitemap and all others belong to the file (spec B14, G11)."""

EXTENSION_KEYS: Final = frozenset({Key.HOST, Key.CLEAN_PARAM, Key.NOINDEX, Key.COMMENT}) | frozenset(
    list(Key)[list(Key).index(Key.NOFOLLOW) :]
)
"""Statements that affect no decision and are reported as written (spec G6 to G9, I7)."""

_TYPOS: Final[Mapping[Key, tuple[str, ...]]] = {
    Key.USER_AGENT: ("useragent", "user agent", "user-agents", "useragents"),
    Key.DISALLOW: ("dissallow", "dissalow", "disalow", "diasllow", "disallaw", "disallows", "disallowed"),
    Key.ALLOW: ("allows", "allowed"),
    Key.SITEMAP: ("site-map", "sitemaps"),
    Key.CONTENT_SIGNAL: ("content-signals",),
    Key.CRAWL_RATE: ("crawl delay", "request rate"),
}
"""The misspellings in the closed list of spec B6, and variants of statements that have no effect (spec I7)."""

_PREFIXES: Final[Mapping[Key, tuple[str, ...]]] = {
    Key.USER_AGENT: ("user-agent", "useragent", "user agent"),
    Key.ALLOW: ("allow",),
    Key.DISALLOW: ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"),
    Key.SITEMAP: ("sitemap", "site-map"),
}
"""The prefixes by which Google's parser recognises a key, in its order (spec B6)."""

_KEYS: Final = tuple(Key)


def code_of(key: Key, form: Form = Form.PROPER) -> int:
    """The byte for a key in `Lines.codes`."""
    number = _KEYS.index(key)
    return number if key in (Key.UNKNOWN, Key.BLANK) else 4 * number + form


def key_of(code: int) -> tuple[Key, Form]:
    """The key and form for a byte of `Lines.codes`."""
    return (_KEYS[code], Form.PROPER) if code < 4 else (_KEYS[code // 4], Form(code % 4))


def codes_of(keys: Iterable[Key], forms: Iterable[Form] = (Form.PROPER, Form.TOLERATED)) -> bytes:
    """The bytes for all of `keys` in all of `forms`."""
    nameless = (Key.UNKNOWN, Key.BLANK)  # these have only one form
    return bytes({code_of(key, form) for key in keys for form in forms if form is Form.PROPER or key not in nameless})


def prefixes_of(key: Key) -> tuple[str, ...]:
    """The prefixes by which Google's parser recognises a key."""
    return _PREFIXES.get(key, ())


_SCANNER: Final = Scanner(
    [(str(key).encode(), code_of(key), False) for key in _KEYS[2:]]
    + [(name.encode(), code_of(key, Form.TOLERATED), False) for key, names in _TYPOS.items() for name in names]
    + [(name.encode(), code_of(key, Form.BY_PREFIX), True) for key, names in _PREFIXES.items() for name in names],
    LINE_LIMIT,
)

_WIDE_MARKS: Final = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_UTF8_MARK: Final = b"\xef\xbb\xbf"


class Directive(NamedTuple):
    """A line with a key. `line` counts from 1, CRLF is one line end; `value` is as written, without outer blanks."""

    line: int
    key: Key
    value: bytes

    @property
    def text(self) -> str:
        """The value as text."""
        return readable(self.value)


class Scan(NamedTuple):
    """The lines of a file. `bom`: it began with a byte order mark or part of one; `truncated`: see `scan`."""

    lines: Lines
    bom: bool
    truncated: bool

    def directive(self, position: int) -> Directive:
        """The line at `position`, with its key as all parsers but Google's read it."""
        key, form = key_of(self.lines.codes[position])
        key = Key.UNKNOWN if form is Form.BY_PREFIX else key
        return Directive(self.lines.number(position), key, self.lines.value(position))

    def directives(self, positions: Iterable[int]) -> tuple[Directive, ...]:
        """The lines at `positions`."""
        return tuple(map(self.directive, positions))

    def text(self, position: int) -> str:
        """The line at `position` as written, without comment and outer blanks."""
        body, value = self.lines.body, self.lines.start(position)
        # A line begins at most LINE_LIMIT bytes before its value.
        begin = max(0, value - LINE_LIMIT)
        for end in (b"\n", b"\r"):
            begin = body.rfind(end, begin, value) + 1 or begin
        line = body[begin : value + len(self.lines.value(position))]
        return readable(line.strip(BLANKS))


def scan(body: bytes, *, truncated: bool = False) -> Scan:
    """Read any bytes. `truncated`: the body was cut, so its last line may be incomplete and is dropped (spec A24).

    The last line is complete where one of RULE_ENDS shows that its value does not continue.
    """
    if len(body) > BODY_LIMIT:
        body, truncated = readable_part(body), True
    bom = False
    if body[:1] > b"\xee" or body[:1] == b"\0":
        # A byte order mark determines the encoding (spec A26).
        encoding = next((encoding for mark, encoding in _WIDE_MARKS if body.startswith(mark)), None)
        if encoding is not None:
            body = body.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace")
            bom = True
        else:
            # A partial UTF-8 mark is dropped too (spec B2).
            size = next((size for size in (3, 2, 1) if body.startswith(_UTF8_MARK[:size])), 0)
            body, bom = body[size:], size > 0
    if truncated:
        # A truncated rule matches more paths than the whole one.
        last = max(body.rfind(b"\n"), body.rfind(b"\r")) + 1
        if b"#" not in body[last:] and b"\0" not in body[last:]:
            body = body[:last]
    return Scan(_SCANNER.scan(body), bom, truncated)


def readable(value: bytes) -> str:
    """Decode a value as UTF-8, with U+FFFD for invalid bytes."""
    return value.decode("utf-8", "replace")
