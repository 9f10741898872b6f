"""What Python 3.10 lacks."""

import sys
from typing import NoReturn

if sys.version_info >= (3, 11):
    from asyncio import timeout
else:
    from async_timeout import timeout

__all__ = ["timeout", "unexpected"]


def unexpected(value: NoReturn) -> AssertionError:
    """The error for a value that the type checker rules out, as typing.assert_never does since Python 3.11."""
    return AssertionError(f"unexpected value: {value!r}")
