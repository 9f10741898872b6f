"""Who pays for the CPU time that a request takes in threads: parts far from the request report it."""

from collections.abc import Callable
from contextvars import ContextVar

SPENT: ContextVar[Callable[[float], None] | None] = ContextVar("spent", default=None)
"""Takes the CPU seconds of long work for the request that runs, if its caller has a quota."""
