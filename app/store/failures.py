"""The exceptions of calls to a Redis server."""

from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError

FAILURES = (RedisError, OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What redis-py raises when a server fails or sends garbage, which it converts, indexes and calls unchecked."""


class ConnectionEnded(NoConnection):
    """A connection on which the server had answered was closed. That says nothing about the next one."""
