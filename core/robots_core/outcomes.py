"""The outcome of a fetch as one word: an HTTP status, or why there was no response to read."""

from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable

BLOCKED_ADDRESS = "blocked_address"

UNREACHABLE_REDIRECT = "unreachable_redirect"
"""A redirect to an address or port that may not be asked: nothing was learned, unlike from a `refused_redirect`."""

_FOLLOWED = (Cause.REDIRECT_LOOP, Cause.REFUSED_REDIRECT)
_OF_A_STATUS = (Cause.SERVER_ERROR, Cause.TOO_MANY_REQUESTS, Cause.HTML_PAGE)


class BadOutcome(ValueError):
    """What is no outcome of a fetch without a file; the message says what is."""


def outcome_of(access: Access) -> str:
    """The word for an outcome, from which `read_outcome` makes one that decides alike; a file's is its status."""
    match access:
        case Successful(status):
            return str(status)
        case Unavailable(status, cause):
            return cause.value if cause in _FOLLOWED else str(status)
        case Unreachable(cause) if cause in _FOLLOWED:
            return UNREACHABLE_REDIRECT
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
    if text == BLOCKED_ADDRESS:
        return Blocked("")
    if text == UNREACHABLE_REDIRECT:
        return Unreachable(Cause.REFUSED_REDIRECT)
    if text in Cause.__members__.values() and text != Cause.HTML_PAGE:
        cause = Cause(text)
        return Unavailable(302, cause) if cause in _FOLLOWED else Unreachable(cause)
    failures = [
        *(cause.value for cause in Cause if cause is not Cause.HTML_PAGE),
        UNREACHABLE_REDIRECT,
        BLOCKED_ADDRESS,
    ]
    hint = "For a 2xx, read() the body."
    if 300 <= status <= 399:
        hint = "After a 304, decide by your copy; follow other redirects, and give redirect_loop if they do not end."
    raise BadOutcome(
        f"{text[:80]!r} is not the outcome of a fetch that brought no file: give a status from 400 to 599, or one of"
        f" {', '.join(failures)}. {hint}"
    )
