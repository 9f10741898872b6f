"""Which content was in use when, by what the service fetched and what callers sent; pure.

Of contents that were found at one time, the one whose period began last counts: for a list of versions, and for a
question about one instant. But what a caller sent divides nothing between two fetches of the service that agree. Every
instant is in whole Unix seconds.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Period(NamedTuple, Generic[T]):
    """From when until when a content was found.

    `own_until`: by a fetch of the service itself, None if by none. `is_failure`: the fetches got no answer, and so
    confirm nothing.
    """

    first_seen: int
    last_seen: int
    own_until: int | None
    is_failure: bool
    of: T


def after_own_fetches(periods: Iterable[Period[T]]) -> list[Period[T]]:
    """The periods; a copy that begins between two fetches that agree begins with the later one, or is left out.

    What callers went on to send of a content that the service had found is a period of its own.
    """
    parts: list[Period[T]] = []
    for period in periods:
        own = period.own_until
        if own is None or own >= period.last_seen:
            parts.append(period)
        else:
            parts += period._replace(last_seen=own), period._replace(first_seen=own + 1, own_until=None)
    # Until the second before the last fetch: a copy of that second may be the later one.
    own_parts = (it for it in parts if it.own_until is not None and not it.is_failure)
    confirmed = _together((it.first_seen, it.last_seen) for it in own_parts)
    begins = [first for first, _ in confirmed]
    found: list[Period[T]] = []
    for part in parts:
        if part.own_until is None:
            at = bisect_right(begins, part.first_seen) - 1
            until = confirmed[at][1] if at >= 0 else 0
            if until > part.last_seen:
                continue
            found.append(part._replace(first_seen=max(until, part.first_seen)))
        else:
            found.append(part)
    return found


def _together(times: Iterable[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The times in order, those that overlap or touch as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(times):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined
