"""Why a page was not fetched. Integrations raise subclasses that are also errors of their library."""

from datetime import datetime, timedelta, timezone
from typing import Any, Literal, NamedTuple, TypeAlias

from robots_decisions._compat import unexpected
from robots_decisions.permits import Denied, InvalidQuestion, NoAnswer, RetryLater, checked_caller, naming
from robots_decisions.process import process_name
from robots_decisions.question import Members, Names, asking, checked_seconds
from robots_decisions.waits import because

MAX_WAIT = 60.0
"""Default seconds that a request may wait for its slot."""

Unreachable: TypeAlias = Literal["fail", "wait", "allow"]
"""While the service is silent: fail at once, wait until `max_wait` is over, or fetch pages without a permit, at the
client's own pace: at least a second for each host, or its last known interval."""

Sign: TypeAlias = bool | Literal["asked"]
"""Whether requests are signed; with "asked", those of pages that ask for it, which are sent once more."""


class PermitError(Exception):
    """A page that was not fetched."""

    def __reduce__(self) -> tuple[Any, ...]:  # that of exceptions passes the message alone, which would break a pool
        return _restored, (type(self), self.args, vars(self))


def _restored(kind: type[PermitError], arguments: tuple[object, ...], members: dict[str, object]) -> PermitError:
    error = kind.__new__(kind)
    error.args = arguments
    vars(error).update(members)
    return error


class Disallowed(PermitError):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided."""

    def __init__(self, message: str, denied: Denied) -> None:
        super().__init__(message)
        self.reason = denied.reason
        self.rule = denied.rule
        self.line = denied.line


class Deferred(PermitError):
    """No slot within `max_wait`: retry at `retry_at`, in `seconds`. `reason` is "pace", "busy", or that of a defer."""

    def __init__(self, message: str, later: RetryLater) -> None:
        super().__init__(message)
        self.seconds = later.seconds
        self.reason = later.reason
        self.retry_at = datetime.now(timezone.utc) + timedelta(seconds=later.seconds)


class NotUnderstood(PermitError):
    """The service rejects the URL, the agent or another member of the question."""


class ServiceUnavailable(PermitError):
    """The service is unavailable, so nothing is known about the page."""


class Misconfigured(ServiceUnavailable):
    """What answers refuses the key, or is not a robots.txt decision service: the message says what to set."""


class ErrorTypes(NamedTuple):
    """The classes that an integration raises."""

    disallowed: type[Disallowed] = Disallowed
    deferred: type[Deferred] = Deferred
    not_understood: type[NotUnderstood] = NotUnderstood
    unavailable: type[ServiceUnavailable] = ServiceUnavailable
    misconfigured: type[Misconfigured] = Misconfigured
    settings: tuple[str, str] | None = None
    """The names of the settings for the key and the URL, if they are not arguments."""

    def error(
        self,
        page: str,
        service: str,
        answer: Denied | RetryLater | InvalidQuestion | NoAnswer,
        missing: str = "verdict on",
    ) -> PermitError:
        """The error for an answer that permits nothing. `page` is a URL, or "2 of 3 pages", without what is
        `missing`."""
        match answer:
            case Denied(why=why):
                return self.disallowed(f"{page} may not be fetched, says {service}: {why}", answer)
            case RetryLater(seconds=seconds):
                why = because(service, answer)
                return self.deferred(f"{page} may not be fetched for {round(seconds, 3):g} s: {why}", answer)
            case InvalidQuestion(why=why):
                return self.not_understood(f"{service} rejects {page}: {why}")
            case NoAnswer(why=why, remedy=None):
                return self.unavailable(f"There is no {missing} {page}: {service} {why}")
            case NoAnswer(why=why, remedy=remedy):
                what = str(remedy) if self.settings is None else naming(str(remedy), *self.settings)
                return self.misconfigured(f"There is no {missing} {page}: {service} {why} {what}".rstrip())
            case _:
                raise unexpected(answer)


class Options:
    """What a crawler asks, and what it does with answers. `repeats`: it can send a request once more, signed.

    Raises ValueError for invalid arguments.
    """

    def __init__(
        self,
        *,
        agent: Names | None = None,
        purpose: Names | None = None,
        enforce: bool = False,
        dialect: str | None = None,
        max_age: float | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        sign: Sign = False,
        repeats: bool = False,
        errors: ErrorTypes | None = None,
    ) -> None:
        if unreachable not in {"fail", "wait", "allow"}:
            raise ValueError(f"unreachable={unreachable!r} is not one of 'fail', 'wait' and 'allow'")
        known = [False, True, *(["asked"] if repeats else [])]
        if sign not in known:
            raise ValueError(f"sign={sign!r} is not one of {', '.join(map(repr, known))}")
        self.members: Members = asking(
            agent=agent, purpose=purpose, enforce=enforce or None, dialect=dialect, max_age=max_age
        )
        self._caller = checked_caller(caller)
        self.sign = sign is True
        self.signs_when_asked = sign == "asked"
        self.signs = self.sign or self.signs_when_asked
        self.max_wait = checked_seconds("max_wait", max_wait)
        self.retries = unreachable == "wait"
        self.opens = unreachable == "allow"
        self.errors = errors or ErrorTypes()

    @property
    def caller(self) -> str:
        """Who shares an origin's slots fairly with others."""
        return self._caller or process_name()

    def members_of(self, url: str, sent: str | None) -> Members:
        """The members of a question: the agent is the configured one, or the one that is `sent` to the site."""
        if "agent" in self.members:
            return self.members
        agent = (sent or "").strip()
        if not agent:
            raise self.errors.not_understood(f"{url} has no agent: set a User-Agent, or `agent`.")
        return {**self.members, "agent": agent}
