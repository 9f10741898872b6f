"""The outcome of a fetch as one word: an HTTP status, or why there was no response to read."""

from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable

BLOCKED_ADDRESS = "blocked_address"

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
        case Unreachable(cause, status):
            return cause.value if status is None or cause not in _OF_A_STATUS else str(status)
        case Blocked():
            return BLOCKED_ADDRESS


def read_outcome(word: int | str) -> Access:
    """What a fetch that brought no file means: a status from 300 to 599, or a failure. Raises BadOutcome.

    A redirect that was not followed counts as a 4xx, as more redirects than are followed do (RFC 9309 2.3.1.2).
    """
    text = str(word)
    if text.isascii() and text.isdigit() and len(text) == 3 and 300 <= int(text) <= 599:
        status = int(text)
        if status == 429:
            return Unreachable(Cause.TOO_MANY_REQUESTS, status)
        return Unreachable(Cause.SERVER_ERROR, status) if status >= 500 else Unavailable(status)
    if text == BLOCKED_ADDRESS:
        return Blocked("")
    if text in Cause.__members__.values() and text != Cause.HTML_PAGE:
        cause = Cause(text)
        return Unavailable(302, cause) if cause in _FOLLOWED else Unreachable(cause)
    failures = [*(cause.value for cause in Cause if cause is not Cause.HTML_PAGE), BLOCKED_ADDRESS]
    raise BadOutcome(
        f"{text[:80]!r} is not the outcome of a fetch that brought no file: give a status from 300 to 599, or one of"
        f" {', '.join(failures)}. For a 2xx, read() the body."
    )
