# scripts/generate.py made this module from httpx_errors.py; change that one.
"""The errors of the transports of httpx2.

They are not httpx2.TransportError, which clients retry at once; here only waiting helps, if anything.
"""

import httpx2

from robots_decisions import errors


class PermitError(errors.PermitError, httpx2.RequestError):
    """A request that was not sent."""


class Disallowed(errors.Disallowed, PermitError):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided."""


class Deferred(errors.Deferred, PermitError):
    """No slot within `max_wait`: retry at `retry_at`, in `seconds`. `reason` is "pace", or the reason of a defer."""


class NotUnderstood(errors.NotUnderstood, PermitError):
    """The service rejects the URL or the agent as malformed."""


class ServiceUnavailable(errors.ServiceUnavailable, PermitError):
    """The service is unavailable, so nothing is known about the page."""


TYPES = errors.ErrorTypes(Disallowed, Deferred, NotUnderstood, ServiceUnavailable)
