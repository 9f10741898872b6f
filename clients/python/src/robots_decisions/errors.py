"""Why a page was not fetched. Integrations raise subclasses that are also errors of their library."""

import logging
from datetime import datetime, timedelta, timezone
from typing import Literal, NamedTuple, TypeAlias

from robots_decisions._compat import unexpected
from robots_decisions.permits import Answer, Denied, Granted, InvalidQuestion, NoAnswer, RetryLater
from robots_decisions.verdicts import Verdict, VerdictAnswer

MAX_WAIT = 60.0
"""Default seconds that a request may wait for its slot."""

Unreachable: TypeAlias = Literal["fail", "wait", "allow"]
"""If the service is unavailable: fail at once, wait until `max_wait` is over, or fetch the page without a permit."""

_log = logging.getLogger("robots_decisions")


class PermitError(Exception):
    """A page that was not fetched."""


class Disallowed(PermitError):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided."""

    def __init__(self, url: str, denied: Denied) -> None:
        super().__init__(f"{url} may not be fetched: {denied}.")
        self.reason = denied.reason
        self.rule = denied.rule
        self.line = denied.line


class Deferred(PermitError):
    """No slot within `max_wait`: retry at `retry_at`, in `seconds`. `reason` is "pace", or the reason of a defer."""

    def __init__(self, url: str, later: RetryLater) -> None:
        self.seconds = later.seconds
        self.reason = later.reason
        self.retry_at = datetime.now(timezone.utc) + timedelta(seconds=later.seconds)
        super().__init__(f"{url} may not be fetched for {later.seconds:g} s: {later.reason}.")


class NotUnderstood(PermitError):
    """The service rejects the URL or the agent as malformed."""


class ServiceUnavailable(PermitError):
    """The service is unavailable, so nothing is known about the page."""


class ErrorTypes(NamedTuple):
    """The classes that an integration raises."""

    disallowed: type[Disallowed] = Disallowed
    deferred: type[Deferred] = Deferred
    not_understood: type[NotUnderstood] = NotUnderstood
    unavailable: type[ServiceUnavailable] = ServiceUnavailable


class Options:
    """What a crawler does with answers. Raises ValueError for invalid arguments."""

    def __init__(
        self, agent: str | None, max_wait: float, unreachable: Unreachable, errors: ErrorTypes | None = None
    ) -> None:
        if unreachable not in {"fail", "wait", "allow"}:
            raise ValueError(f"unreachable={unreachable!r} is not one of 'fail', 'wait' and 'allow'")
        if agent is not None and not agent.strip():
            raise ValueError(f"agent={agent!r} is empty")
        self._agent = agent
        self.max_wait = checked_seconds(max_wait)
        self.retry = unreachable == "wait"
        self.errors = errors or ErrorTypes()
        self._open = unreachable == "allow"

    def agent(self, url: str, sent: str | None) -> str:
        """The agent to ask as: the configured one, or the one that is `sent` to the site."""
        agent = self._agent or (sent or "").strip()
        if not agent:
            raise self.errors.not_understood(f"{url} has no agent: set a User-Agent, or `agent`.")
        return agent

    def grant(self, url: str, answer: Answer) -> Granted | None:
        """The grant, or None to fetch the page without a permit. Raise PermitError otherwise."""
        if isinstance(answer, Granted):
            return answer
        if isinstance(answer, NoAnswer) and self._open:
            _log.warning("fetching %s without a permit: %s", url, answer.why)
            return None
        raise self._error(url, answer)

    def verdict(self, url: str, answer: VerdictAnswer) -> Verdict:
        """The verdict. Raise PermitError without one."""
        if isinstance(answer, Verdict):
            return answer
        raise self._error(url, answer)

    def _error(self, url: str, answer: Denied | RetryLater | InvalidQuestion | NoAnswer) -> PermitError:
        match answer:
            case Denied():
                return self.errors.disallowed(url, answer)
            case RetryLater():
                return self.errors.deferred(url, answer)
            case InvalidQuestion(why=why):
                return self.errors.not_understood(f"The service rejects {url}: {why}.")
            case NoAnswer(why=why):
                return self.errors.unavailable(f"There is no verdict on {url}: {why}.")
            case _:
                raise unexpected(answer)


def checked_seconds(seconds: float) -> float:
    """The seconds. Raise ValueError if they are not finite, or negative."""
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"max_wait={seconds!r} is not a valid number of seconds")
    return seconds
