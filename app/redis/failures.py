"""The exceptions of calls to a Redis server."""

from redis.exceptions import AskError, ClusterDownError, MovedError, RedisError, TryAgainError

FAILURES = (RedisError, OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What redis-py raises when a server fails or sends garbage, which it converts, indexes and calls unchecked."""

REDIRECTIONS = (MovedError, AskError, TryAgainError, ClusterDownError)
"""What a node of a cluster sends in place of a reply if it does not have the key now. It has run nothing."""
