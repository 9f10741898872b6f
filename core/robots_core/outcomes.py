"""The outcome of a fetch as one word: an HTTP status, or why there was no response to read."""

from typing import Final

from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable

BLOCKED_ADDRESS: Final = "blocked_address"

UNREACHABLE_REDIRECT: Final = "unreachable_redirect"
"""A redirect to an address or port that may not be asked: nothing was learned, unlike from a `refused_redirect`."""

_FOLLOWED: Final = (Cause.REDIRECT_LOOP, Cause.COOKIE_LOOP, Cause.REFUSED_REDIRECT)
_OF_A_STATUS: Final = (Cause.SERVER_ERROR, Cause.TOO_MANY_REQUESTS, Cause.HTML_PAGE)

_FAILURES: Final[dict[str, Access]] = {
    **{cause.value: Unreachable(cause) for cause in Cause if cause is not Cause.HTML_PAGE},
    **{cause.value: Unavailable(302, cause) for cause in _FOLLOWED},
    UNREACHABLE_REDIRECT: Unreachable(Cause.REFUSED_REDIRECT),
    BLOCKED_ADDRESS: Blocked(""),
}


class BadOutcome(ValueError):
    """What is no outcome of a fetch without a file; the message says what is."""


def outcome_of(access: Access) -> str:
    """The word for an outcome, from which `read_outcome` makes one that decides alike; a file's is its status."""
    match access:
        case Unavailable(cause=Cause.REDIRECT_LOOP | Cause.COOKIE_LOOP | Cause.REFUSED_REDIRECT as cause):
            return cause.value
        case Successful(status) | Unavailable(status):
            return str(status)
        case Unreachable(Cause.REDIRECT_LOOP | Cause.COOKIE_LOOP | Cause.REFUSED_REDIRECT):
            return UNREACHABLE_REDIRECT
        case Unreachable(Cause.HTML_PAGE, status) if status is None or status < 400:
            return Cause.BAD_RESPONSE.value  # the word of a 2xx has a body
        case Unreachable(cause, status):
            return cause.value if status is None or cause not in _OF_A_STATUS else str(status)
        case Blocked():
            return BLOCKED_ADDRESS


def read_outcome(word: int | str) -> Access:
    """What a fetch that brought no file means: a status from 400 to 599, or a failure. Raises BadOutcome.

    A 3xx says nothing of the file: a fetch follows redirects, and after a 304 the copy decides that it confirms.
    """
    text = str(word)
    status = int(text) if text.isascii() and text.isdigit() and len(text) == 3 else 0
    if 400 <= status <= 599:
        if status == 429:
            return Unreachable(Cause.TOO_MANY_REQUESTS, status)
        return Unreachable(Cause.SERVER_ERROR, status) if status >= 500 else Unavailable(status)
    try:
        return _FAILURES[text]
    except KeyError:
        raise BadOutcome(
            f"{text[:80]!r} is not the outcome of a fetch that brought no file: {_advice(status)}"
        ) from None


def _advice(status: int) -> str:
    if status == 304:
        return "it says that a copy is still current. Decide by that copy."
    if status == 206:
        return "it brings a part of the file. Ask for all of it, or give bad_response."
    if 200 <= status <= 299:
        return "read() the body, b'' if there is none."
    if 300 <= status <= 399:
        return "it says nothing of the file. Give the outcome of what it leads to, redirect_loop, or bad_response."
    return f"give a status from 400 to 599, or one of {', '.join(_FAILURES)}."
