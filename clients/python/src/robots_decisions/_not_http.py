"""Whether a failed exchange means that something else than a service answers: not in HTTP, or without trusted TLS."""

import ssl
from collections.abc import Iterator
from http.client import BadStatusLine, RemoteDisconnected

_BROKEN = ("server disconnected", "peer closed", "connection closed", "connection lost", "incomplete")
"""How messages begin about connections that end in the middle of HTTP."""

_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, RemoteDisconnected)
"""Errors of connections that end."""

CAUSES = 10
"""Causes of an error that are looked at."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what caused it, to the first cause."""
    seen: BaseException | None = error
    for _ in range(CAUSES):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def is_not_http(
    error: BaseException, protocol_error: "type[BaseException] | tuple[type[BaseException], ...]" = ()
) -> bool:
    """Whether the error is of TLS or of HTTP, or one of a library's `protocol_error`, and of no broken connection."""
    if isinstance(error, protocol_error) and not str(error).lower().startswith(_BROKEN):
        return True
    found = next((one for one in causes(error) if isinstance(one, ssl.SSLError | BadStatusLine)), None)
    return found is not None and not isinstance(found, _ENDED)
