"""Combine the meta robots tags and X-Robots-Tag headers of a page into its effective indexing rules (spec H).

Rules only accumulate: no header or tag can revoke a restriction of another one. So the result does not depend on their
order, and an additional one never permits more.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias

from robots_core.dates import DATE_LIMIT, read_date

RULES_LIMIT: Final = 8 * 1024
"""Characters of a header line or a meta content that are read; a rule that is cut by the limit is dropped."""

META_ATTRIBUTES: Final = ("property=", "http-equiv=", "itemprop=")
"""Attributes in which pages write the name of a meta tag for crawlers, who read it in `name` alone."""

COUNT_LIMIT: Final = 100
"""How many headers, meta tags with a name of the agent, and agents are read, of each (spec H4)."""

EFFECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "all": (),
    "index": (),
    "follow": (),
    "none": ("noindex", "nofollow"),
    "noindex": ("noindex",),
    "nofollow": ("nofollow",),
    "nosnippet": ("nosnippet",),
    "notranslate": ("notranslate",),
    "noimageindex": ("noimageindex",),
    "indexifembedded": ("indexifembedded",),
    "noarchive": ("noarchive",),
    "nocache": ("nocache",),
    "nositelinkssearchbox": ("nositelinkssearchbox",),
    "noodp": ("noodp",),
    "noydir": ("noydir",),
    "noai": ("noai",),
    "noimageai": ("noimageai",),
    "noml": ("noml",),
}
"""Rules without a value, and what each adds to the effective set (spec H3, H10)."""

_SNIPPET, _IMAGE, _VIDEO, _AFTER = "max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"
VALUED: Final = frozenset({_SNIPPET, _IMAGE, _VIDEO, _AFTER})
"""Rules with a value."""

FIELD_NAME: Final = "x-robots-tag"
_NO_LIMIT = "-1"
_IMAGE_SIZES = ("none", "standard", "large")  # the most restrictive first (spec H7)

# A name without a letter is not an agent but the hour of an invalid date.
_TOKEN = re.compile(r"[0-9!#$%&'*+.^_`|~-]*[A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*", re.ASCII)
_SEPARATORS = re.compile(r"[\s,;|/]+")
_MISNAMED = frozenset({FIELD_NAME, "robot"})
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class IndexingSource:
    """A rule that contributes to the result, and its source.

    `where` is `header 1` or `meta 2`, counted from 1 for each kind. `agent` is the lower-case name of the agent that
    the rule is for, None for all agents. `rule` is the rule in its normal form (`noindex`, `max-snippet:20`).
    """

    where: str
    agent: str | None
    rule: str


@dataclass(frozen=True, slots=True)
class Indexing:
    """The effective rules for one agent.

    `rules` are sorted and lower-case. `max_snippet` is in characters, `max_video_preview` in seconds (0: only a still
    image), `max_image_preview` is none, standard or large. None means no limit, or for the snippet, that `nosnippet`
    forbids it. `unavailable_after` is a UTC instant. `unread`: headers and meta tags for the agent past COUNT_LIMIT.
    `unknown` is what was meant for crawlers but has no effect: words that are not rules, a name before a colon that is
    not a crawler's (`noindex:`), and names of meta tags as attributes (`name="googlebot, bingbot"`).
    """

    rules: tuple[str, ...]
    max_snippet: int | None
    max_image_preview: str | None
    max_video_preview: int | None
    unavailable_after: datetime | None
    sources: tuple[IndexingSource, ...]
    unread: int = 0
    unknown: tuple[IndexingSource, ...] = ()


_Value: TypeAlias = int | datetime | None
_Claim: TypeAlias = tuple[str, _Value, IndexingSource]
"""(name, value, source): one effect of a rule. The smaller of two values is more restrictive."""

_Statement: TypeAlias = tuple[str | None, str, str | None]
"""(scope, rule name, value): a rule as written, with names in lower case; the value is None if there is no colon."""


def effective(agents: Sequence[str], headers: Sequence[str], metas: Sequence[tuple[str, str]]) -> Indexing:
    """Combine X-Robots-Tag `headers` (values, one per field line) and `metas` (name, content) for an agent (spec H).

    `agents` are the names of the agent besides `robots`, in any case. Unknown rules are ignored (spec H2).
    """
    own = {"robots"} | {agent.strip().lower() for agent in agents[:COUNT_LIMIT] if agent.strip()}
    claims: list[_Claim] = []
    unknown: list[IndexingSource] = []
    for number, header in enumerate(headers[:COUNT_LIMIT], 1):
        claims += _claims(f"header {number}", _header_statements(header), own, unknown)
    tags = [(number, name, content) for number, (name, content) in enumerate(metas, 1) if name.strip().lower() in own]
    for number, name, content in tags[:COUNT_LIMIT]:
        claims += _claims(f"meta {number}", _meta_statements(name, content), own, unknown)
    for number, (name, _) in enumerate(metas, 1):
        misnamed = _misnamed(name.strip().lower(), own)
        if misnamed is not None:
            unknown.append(IndexingSource(f"meta {number}", None, misnamed))
    unread = len(headers[COUNT_LIMIT:]) + len(tags[COUNT_LIMIT:])
    return replace(_combine(claims), unread=unread, unknown=tuple(dict.fromkeys(unknown)))


def _misnamed(name: str, own: set[str]) -> str | None:
    """The name of a meta tag that is meant for crawlers, of which none reads it, as an attribute; None for others."""
    if name.startswith(META_ATTRIBUTES):
        return name
    pieces = _SEPARATORS.split(name[:RULES_LIMIT])
    meant = name in _MISNAMED or (len(pieces) > 1 and not own.isdisjoint(pieces))
    return f'name="{name}"' if meant else None


def _combine(claims: Sequence[_Claim]) -> Indexing:
    """Combine all claims; the most restrictive value wins (spec H7, H8, H9)."""
    # name -> smallest value. One dict for flags, whose value is None, and limits, whose value never is.
    smallest: dict[str, _Value] = {}
    for name, value, _ in claims:
        smallest[name] = _smaller(smallest[name], value) if name in smallest else value
    if "noindex" not in smallest:
        smallest.pop("indexifembedded", None)
    if "nosnippet" in smallest:
        smallest.pop(_SNIPPET, None)
    sources = (source for name, value, source in claims if name in smallest and smallest[name] == value)
    image = _number(smallest.get(_IMAGE))
    return Indexing(
        rules=tuple(sorted(smallest.keys() - VALUED)),
        max_snippet=_number(smallest.get(_SNIPPET)),
        max_image_preview=None if image is None else _IMAGE_SIZES[image],
        max_video_preview=_number(smallest.get(_VIDEO)),
        unavailable_after=_date(smallest.get(_AFTER)),
        sources=tuple(dict.fromkeys(sources)),
    )


def _smaller(one: _Value, other: _Value) -> _Value:
    match one, other:
        case int(), int():
            return min(one, other)
        case datetime(), datetime():
            return min(one, other)
        case _:
            return one


def _number(value: _Value) -> int | None:
    return value if isinstance(value, int) else None


def _date(value: _Value) -> datetime | None:
    return value if isinstance(value, datetime) else None


def _claims(
    where: str, statements: Iterable[_Statement], own: set[str], unknown: list[IndexingSource]
) -> Iterator[_Claim]:
    """The claims of these statements for an agent with the names `own`; what has no effect is added to `unknown`."""
    for scope, name, value in statements:
        if scope is not None and scope not in own:
            if scope == FIELD_NAME or scope in EFFECTS:
                unknown.append(IndexingSource(where, None, f"{scope}:"))
        elif value is not None:
            limits = list(_limit(name, value.strip(), where, scope))
            if not limits and value.strip() != _NO_LIMIT:
                unknown.append(IndexingSource(where, scope, f"{name}:{value.strip()}"))
            yield from limits
        elif name in EFFECTS:
            source = IndexingSource(where, scope, name)
            yield from ((effect, None, source) for effect in EFFECTS[name])
        else:
            unknown.append(IndexingSource(where, scope, name))


def _limit(name: str, value: str, where: str, scope: str | None) -> Iterator[_Claim]:
    """The claim of a rule with a value; none if the value is invalid or sets no limit (-1) (spec H3, H6)."""
    if name == _AFTER:
        date = read_date(value)
        if date is not None:
            yield _AFTER, date, IndexingSource(where, scope, f"{_AFTER}:{date.isoformat().replace('+00:00', 'Z')}")
    elif name == _IMAGE:
        size = value.lower()
        if size in _IMAGE_SIZES:
            yield _IMAGE, _IMAGE_SIZES.index(size), IndexingSource(where, scope, f"{_IMAGE}:{size}")
    elif _NUMBER.fullmatch(value):
        number = int(value)
        source = IndexingSource(where, scope, f"{name}:{number}")
        if name == _SNIPPET and number == 0:
            yield "nosnippet", None, source
        else:
            yield name, number, source


def _header_statements(header: str) -> Iterator[_Statement]:
    """The rules of a field line. A name before a colon that is not a known rule is an agent (spec H5).

    A proxy may have joined several lines into this one, so an agent may appear anywhere and begins a new scope.
    """
    scope: str | None = None
    pieces = _pieces(header)
    at = 0
    while at < len(pieces):
        parts = pieces[at].split(":")
        taken = 1
        for index, part in enumerate(parts):
            name = part.strip().lower()
            if index == len(parts) - 1:
                yield scope, name, None
            elif name in VALUED:
                value, taken = _whole_value(name, ":".join(parts[index + 1 :]), pieces, at)
                yield scope, name, value
                break
            elif _TOKEN.fullmatch(name):
                scope = name
            else:
                yield scope, pieces[at].strip().lower(), None
                break
        at += taken


def _meta_statements(name: str, content: str) -> Iterator[_Statement]:
    """The rules of a meta tag, all for the agent in its name (spec H9)."""
    scope = name.strip().lower()
    pieces = _pieces(content)
    at = 0
    while at < len(pieces):
        rule, colon, rest = pieces[at].partition(":")
        rule, taken = rule.strip().lower(), 1
        if not colon:
            yield scope, rule, None
        elif rule in VALUED:
            value, taken = _whole_value(rule, rest, pieces, at)
            yield scope, rule, value
        else:
            yield scope, pieces[at].strip().lower(), None
        at += taken


def _pieces(text: str) -> list[str]:
    """Split at commas; empty pieces are left out."""
    pieces = text[:RULES_LIMIT].split(",")
    if len(text) > RULES_LIMIT:
        # Drop the piece that was cut: it may be a different rule (`max-snippet:1` from `max-snippet:160`).
        pieces.pop()
    return [piece for piece in pieces if piece and not piece.isspace()]


def _whole_value(name: str, value: str, pieces: Sequence[str], at: int) -> tuple[str, int]:
    """The value that begins in piece `at`, and how many pieces it takes, since a date may contain commas (spec H6).

    `Friday, 25-Jun-10` has one and `Friday, June 25, 2010` two. Pieces are joined only if the result is a valid date:
    in `Friday, noindex`, the `noindex` must not be lost.
    """
    if name == _AFTER:
        for more in (2, 1):
            following = pieces[at + 1 : at + 1 + more]
            # Check the length first: joining long pieces again and again would take quadratic time.
            if len(following) == more and len(value) + sum(map(len, following)) <= DATE_LIMIT:
                joined = ",".join((value, *following)).strip()
                if read_date(joined) is not None:
                    return joined, 1 + more
    return value, 1
