"""Dates in the formats of mail, HTTP and ISO 8601, and near them (spec H6)."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

END_OF_TIME: Final = 253_402_300_799.0
"""The last second of the year 9999, in Unix seconds: datetime and RFC 3339 cannot represent a later one."""

DATE_LIMIT: Final = 64
"""Characters of the longest text that is read as a date; the longest format has fewer than 50."""


def read_date(text: str) -> datetime | None:
    """Read a date in the format of RFC 822, RFC 850, ISO 8601 or asctime, or near it, as a UTC instant (spec H6).

    Seconds, the time and the zone may be missing: a date alone is 00:00, and without a zone it is UTC. None for any
    other text.
    """
    if len(text) > DATE_LIMIT:
        return None
    text = " ".join(text.split())
    for form in _DATE_FORMS:
        written = form.fullmatch(text)
        if written is not None:
            return _instant(written.groupdict())
    return None


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

# Minutes east of Greenwich. Ambiguous names (IST, and CST in China) have their RFC 822 meaning or are left out.
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

# They are matched against at most 64 characters and every part is bounded, so there is little to backtrack over.
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
            min(int(parts["second"] or 0), 59),  # datetime cannot represent a leap second: use the one before
            tzinfo=timezone(timedelta(minutes=minutes_east)),
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError):  # the 31st of June, 25 o'clock, an instant outside the years 1 to 9999
        return None


def _full_year(year: str) -> int:
    # RFC 9110 5.6.7 reads two digits relative to now, which needs a clock, and makes the meaning of a header depend on
    # the day it is read. The pivot of POSIX strptime is fixed: 69 to 99 are 1969 to 1999.
    number = int(year)
    if len(year) > 2:
        return number
    return number + (1900 if number >= 69 else 2000)


def _month(parts: dict[str, str | None]) -> int | None:
    name = parts.get("name")
    return int(parts.get("month") or 0) if name is None else _MONTHS.get(name.lower())


def _minutes_east(parts: dict[str, str | None]) -> int | None:
    """The zone as minutes east of Greenwich, 0 if there is none; None if it is invalid.

    Unknown names are UTC, as RFC 5322 4.3 reads them (-0000). A rule that takes effect some hours early or late still
    forbids what its author forbade, which a discarded rule would not.
    """
    if parts["sign"] is None:
        return _ZONES.get((parts["only"] or "utc").lower(), 0)
    east, past = int(parts["east"] or 0), int(parts["past"] or 0)
    if (parts["zone"] or "utc").lower() not in ("utc", "gmt", "ut") or east > 23 or past > 59:
        return None
    return (east * 60 + past) * (-1 if parts["sign"] == "-" else 1)
