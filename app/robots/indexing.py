"""Meta robots and X-Robots-Tag: what a page's own tags permit an indexer, as one effective set (spec H).

Rules only ever add up: nothing that a header or a tag says can take back what another one forbids, so the result does
not depend on their order, and reading one more of them never permits more.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, TypeAlias

FIELD_LIMIT: Final = 8 * 1024
"""Characters of one header line or one meta content that are read; the rule that the limit cuts in two is dropped."""

COUNT_LIMIT: Final = 100
"""How many headers, how many meta tags and how many agents are read; further ones are ignored."""

_DATE_LIMIT = 64  # characters: the longest form that is read has fewer than 50

_EFFECTS: dict[str, tuple[str, ...]] = {
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
}
"""The rules without a value, and what each puts into the effective set (spec H3, H10)."""

_SNIPPET, _IMAGE, _VIDEO, _AFTER = "max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"
_VALUED = frozenset({_SNIPPET, _IMAGE, _VIDEO, _AFTER})
_IMAGE_SIZES = ("none", "standard", "large")  # the most restrictive first (spec H7)

# A name with no letter in it is no agent: it is the hour of a date that could not be read.
_TOKEN = re.compile(r"[0-9!#$%&'*+.^_`|~-]*[A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Source:
    """One rule that shapes the result, and where it was met.

    `where` is `header 1` or `meta 2`, each kind counted from 1 as given; `agent` is the lower-case name it is addressed
    to, None where it binds all; `rule` is the rule in its plain form (`noindex`, `max-snippet:20`).
    """

    where: str
    agent: str | None
    rule: str


@dataclass(frozen=True, slots=True)
class Indexing:
    """The effective rules for one agent.

    `rules` are sorted and lower-case. `max_snippet` is in characters, `max_video_preview` in seconds (0 = a still image
    at most), `max_image_preview` none, standard or large; None says that nothing limits it, or, for the snippet, that
    `nosnippet` rules it out altogether. `unavailable_after` is a UTC instant.
    """

    rules: tuple[str, ...]
    max_snippet: int | None
    max_image_preview: str | None
    max_video_preview: int | None
    unavailable_after: datetime | None
    sources: tuple[Source, ...]


_Value: TypeAlias = int | datetime | None
_Claim: TypeAlias = tuple[str, _Value, Source]
"""(name, value, source): one effect of one rule; the smaller of two values is the more restrictive one."""

_Statement: TypeAlias = tuple[str | None, str, str | None]
"""(scope, rule name, value): a rule as written, its names in lower case; the value is None where there is no colon."""


def effective(agents: Sequence[str], headers: Sequence[str], metas: Sequence[tuple[str, str]]) -> Indexing:
    """What X-Robots-Tag `headers` (values, one per field line) and `metas` (name, content) mean for an agent (spec H).

    `agents` are the tokens the agent answers to, in any case, beside `robots`. Any text is read; what has no meaning is
    ignored (spec H2).
    """
    own = {"robots"} | {agent.strip().lower() for agent in agents[:COUNT_LIMIT] if agent.strip()}
    claims: list[_Claim] = []
    for number, header in enumerate(headers[:COUNT_LIMIT], 1):
        claims += _claims(f"header {number}", _header_statements(header), own)
    for number, (name, content) in enumerate(metas[:COUNT_LIMIT], 1):
        claims += _claims(f"meta {number}", _meta_statements(name, content), own)
    return _combine(claims)


def read_date(text: str) -> datetime | None:
    """Read a date as RFC 822, RFC 850, ISO 8601, asctime or near them write it, as a UTC instant (spec H6).

    Seconds, the time and the zone may be missing: a date alone is 00:00, and no zone is UTC. None is no date.
    """
    if len(text) > _DATE_LIMIT:
        return None
    text = " ".join(text.split())
    for form in _DATE_FORMS:
        written = form.fullmatch(text)
        if written is not None:
            return _instant(written.groupdict())
    return None


def _combine(claims: Sequence[_Claim]) -> Indexing:
    """The most restrictive of everything claimed (spec H7, H8, H9)."""
    # A flag has the value None and a limit never has, so one dict holds both: name -> the smallest value met.
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
        rules=tuple(sorted(smallest.keys() - _VALUED)),
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


def _claims(where: str, statements: Iterable[_Statement], own: set[str]) -> Iterator[_Claim]:
    """What these statements claim of an agent of the names `own`."""
    for scope, name, value in statements:
        if scope is not None and scope not in own:
            continue
        if value is None:
            source = Source(where, scope, name)
            yield from ((effect, None, source) for effect in _EFFECTS.get(name, ()))
        else:
            yield from _limit(name, value.strip(), where, scope)


def _limit(name: str, value: str, where: str, scope: str | None) -> Iterator[_Claim]:
    """A rule with a value; one that cannot be read, or that sets no limit (-1), claims nothing (spec H3, H6)."""
    if name == _AFTER:
        date = read_date(value)
        if date is not None:
            yield _AFTER, date, Source(where, scope, f"{_AFTER}:{date.isoformat().replace('+00:00', 'Z')}")
    elif name == _IMAGE:
        size = value.lower()
        if size in _IMAGE_SIZES:
            yield _IMAGE, _IMAGE_SIZES.index(size), Source(where, scope, f"{_IMAGE}:{size}")
    elif _NUMBER.fullmatch(value):
        number = int(value)
        source = Source(where, scope, f"{name}:{number}")
        if name == _SNIPPET and number == 0:
            yield "nosnippet", None, source
        else:
            yield name, number, source


def _header_statements(header: str) -> Iterator[_Statement]:
    """The rules of a field line; a name before a colon that is no rule of ours is the agent they are for (spec H5).

    A proxy may have folded several lines into this one, so such a name opens a new scope wherever it stands.
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
            elif name in _VALUED:
                value, taken = _whole_value(name, ":".join(parts[index + 1 :]), pieces, at)
                yield scope, name, value
                break
            elif _TOKEN.fullmatch(name):
                scope = name
            else:
                break
        at += taken


def _meta_statements(name: str, content: str) -> Iterator[_Statement]:
    """The rules of a meta tag, all of them for the agent that the tag names (spec H9)."""
    scope = name.strip().lower()
    pieces = _pieces(content)
    at = 0
    while at < len(pieces):
        rule, colon, rest = pieces[at].partition(":")
        rule, taken = rule.strip().lower(), 1
        if not colon:
            yield scope, rule, None
        elif rule in _VALUED:
            value, taken = _whole_value(rule, rest, pieces, at)
            yield scope, rule, value
        at += taken


def _pieces(text: str) -> list[str]:
    """What stands between the commas, empty pieces left out."""
    pieces = text[:FIELD_LIMIT].split(",")
    if len(text) > FIELD_LIMIT:
        # The cut piece goes: half a rule is another rule (`max-snippet:1` of `max-snippet:160`).
        pieces.pop()
    return [piece for piece in pieces if piece and not piece.isspace()]


def _whole_value(name: str, value: str, pieces: Sequence[str], at: int) -> tuple[str, int]:
    """The value that starts in piece `at`, and how many pieces it takes: a date may hold commas (spec H6).

    `Friday, 25-Jun-10` has one and `Friday, June 25, 2010` two. A comma is the date's own only if what comes of it
    reads as a date: the `noindex` of `Friday, noindex` must not be lost to a date that never was one.
    """
    if name == _AFTER:
        for more in (2, 1):
            following = pieces[at + 1 : at + 1 + more]
            # The length first: joining what is too long for a date anyway would cost its length again each time.
            if len(following) == more and len(value) + sum(map(len, following)) <= _DATE_LIMIT:
                joined = ",".join((value, *following)).strip()
                if read_date(joined) is not None:
                    return joined, 1 + more
    return value, 1


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("jan", "january"),
            ("feb", "february"),
            ("mar", "march"),
            ("apr", "april"),
            ("may",),
            ("jun", "june"),
            ("jul", "july"),
            ("aug", "august"),
            ("sep", "sept", "september"),
            ("oct", "october"),
            ("nov", "november"),
            ("dec", "december"),
        ),
        1,
    )
    for name in names
}

# Minutes east of Greenwich. Names that mean several zones (IST, and CST in China) have their RFC 822 meaning or none.
_ZONES = {
    "z": 0,
    "ut": 0,
    "utc": 0,
    "gmt": 0,
    "wet": 0,
    "west": 60,
    "bst": 60,
    "cet": 60,
    "cest": 120,
    "eet": 120,
    "eest": 180,
    "msk": 180,
    "jst": 540,
    "kst": 540,
    "aest": 600,
    "aedt": 660,
    "nzst": 720,
    "nzdt": 780,
    "ast": -240,
    "adt": -180,
    "est": -300,
    "edt": -240,
    "cst": -360,
    "cdt": -300,
    "mst": -420,
    "mdt": -360,
    "pst": -480,
    "pdt": -420,
    "akst": -540,
    "akdt": -480,
    "hst": -600,
}

_DAY_NAME = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?,? ?)?"
_MONTH_NAME = r"(?P<name>[a-z]{3,9})"
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.[0-9]{1,9})?)?"
_PACKED_TIME = r"(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})(?P<second>[0-9]{2})?"
_ZONE = r"(?: ?(?P<zone>[a-z]{1,5})?(?P<sign>[+-])(?P<east>[0-9]{2}):?(?P<past>[0-9]{2})?| ?(?P<only>[a-z]{1,5}))?"
_LATER = rf"(?:,? {_TIME}{_ZONE})?"

# They are matched against at most 64 characters, in which every part is bounded: there is nothing to backtrack over.
_DATE_FORMS = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        # 2010-06-25T15:00:00Z, 2010-06-25 15:00 +02:00, 2010-06-25, 20100625T150000Z
        rf"(?P<year>[0-9]{{4}})-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})(?:(?:,? |t){_TIME}{_ZONE})?",
        rf"(?P<year>[0-9]{{4}})(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}})(?:t{_PACKED_TIME}{_ZONE})?",
        # Fri, 25 Jun 2010 15:00:00 GMT; Friday, 25-Jun-10 15:00:00 UTC; 25 Jun 2010 15:00 PST
        rf"{_DAY_NAME}(?P<day>[0-9]{{1,2}})[ -]{_MONTH_NAME}[ -](?P<year>[0-9]{{4}}|[0-9]{{2}}){_LATER}",
        # Fri Jun 25 15:00:00 2010, Fri Jun 25 15:00:00 UTC 2010
        rf"{_DAY_NAME}{_MONTH_NAME} (?P<day>[0-9]{{1,2}}) {_TIME}{_ZONE} (?P<year>[0-9]{{4}})",
        # June 25, 2010 15:00 PST
        rf"{_DAY_NAME}{_MONTH_NAME} (?P<day>[0-9]{{1,2}}),? (?P<year>[0-9]{{4}}){_LATER}",
    )
)


def _instant(parts: dict[str, str | None]) -> datetime | None:
    year, month, minutes_east = parts["year"] or "", _month(parts), _minutes_east(parts)
    if month is None or minutes_east is None:
        return None
    try:
        local = datetime(
            _full_year(year),
            month,
            int(parts["day"] or 0),
            int(parts["hour"] or 0),
            int(parts["minute"] or 0),
            min(int(parts["second"] or 0), 59),  # a leap second has no datetime: the second before is the careful one
            tzinfo=timezone(timedelta(minutes=minutes_east)),
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError):  # the 31st of June, 25 o'clock, an instant outside the years 1 to 9999
        return None


def _full_year(year: str) -> int:
    # RFC 9110 5.6.7 reads two digits as the year within 50 of now, which takes a clock, and would make one header mean
    # one thing today and another tomorrow. POSIX strptime's fixed pivot needs none: 69 to 99 are 1969 to 1999.
    number = int(year)
    if len(year) > 2:
        return number
    return number + (1900 if number >= 69 else 2000)


def _month(parts: dict[str, str | None]) -> int | None:
    name = parts.get("name")
    return int(parts.get("month") or 0) if name is None else _MONTHS.get(name.lower())


def _minutes_east(parts: dict[str, str | None]) -> int | None:
    """The zone as minutes east of Greenwich, None when it is none; no zone is UTC.

    A name that is not in the table is UTC: RFC 5322 4.3 reads unknown zones as -0000, and a rule that comes into force
    some hours off still keeps what its author forbade, which a rule thrown away would not.
    """
    if parts["sign"] is None:
        return _ZONES.get((parts["only"] or "utc").lower(), 0)
    east, past = int(parts["east"] or 0), int(parts["past"] or 0)
    if (parts["zone"] or "utc").lower() not in ("utc", "gmt", "ut") or east > 23 or past > 59:
        return None
    return (east * 60 + past) * (-1 if parts["sign"] == "-" else 1)
