"""What parts far from its route know of the current request; the tasks that it starts inherit this."""

from collections.abc import Callable
from contextvars import ContextVar

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""Its id."""

TRACE_ID: ContextVar[str | None] = ContextVar("trace_id", default=None)
"""Its trace, 32 hexadecimal digits."""

KEY_ID: ContextVar[str | None] = ContextVar("key_id", default=None)
"""The id of its API key."""

SPENT: ContextVar[Callable[[float], None] | None] = ContextVar("spent", default=None)
"""Takes the CPU seconds of long work in threads, if its caller has a quota."""
