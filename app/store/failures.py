"""The exceptions of calls to a Redis server."""

from redis.exceptions import RedisError

FAILURES = (RedisError, OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What redis-py raises when a server fails or sends garbage, which it converts, indexes and calls unchecked."""
