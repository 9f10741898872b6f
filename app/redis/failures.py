"""What can go wrong with a server of Redis."""

from redis.exceptions import RedisError

FAILURES = (RedisError, OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What redis-py raises when a server fails, and when it talks nonsense: it converts, indexes and calls what came."""
