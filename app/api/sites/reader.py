"""Read a page of a site for a caller: as one of the fleet's crawlers, by the name of USER_AGENT.

robots.txt decides about every request, and each needs a slot of its host's pace, the requests that redirects lead to
included. Nothing is cached.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from app.decisions.evaluate import Decision, Question
from app.decisions.question import agent_from, dialect_from
from app.fetch.client import Received
from app.fetch.response import REDIRECTS, retry_after
from app.loop.admission import CallerShares, Refused, ignore, refusal
from app.pacing.permit import SlotRef
from app.pacing.permits import Outcome, PermitRequest, Permits, Report
from app.pacing.slots import Slot
from robots_core.agents.directory import AgentDirectory
from robots_core.origin import Target
from robots_core.robots.access import REDIRECT_LIMIT, Access, Blocked, Busy, Unreachable
from robots_core.robots.verdict import Permission, Reason

AT_ONCE, PER_CALLER = 4, 2
"""Requests for which sites are read at once, in all and of one caller: each may hold a sitemap of 10 MB twice."""


_NOT_PUBLIC = "It is at an address that is not on the public internet."

_NOT_BY_FILE: Mapping[Reason, str] = {
    Reason.BLOCKED_ADDRESS: _NOT_PUBLIC,
    Reason.OVERRIDDEN: "The operator of this service has closed it.",
}


class ReadOutcome(StrEnum):
    """What became of a page that was to be read."""

    READ = "read"
    DISALLOWED = "disallowed"
    """robots.txt closes it to the service's own crawler."""
    DEFERRED = "deferred"
    """robots.txt could not be fetched, or the pace leaves no slot in time."""
    FAILED = "failed"


class SitePage(NamedTuple):
    """What became of a page: `detail` says it in a sentence, "" for one that was read.

    `target` is where redirects led. `body` is its first part, and `truncated` whether there is more.
    """

    outcome: ReadOutcome
    target: Target
    detail: str = ""
    response: Received | None = None

    @property
    def body(self) -> bytes:
        return b"" if self.response is None or self.response.body is None else self.response.body

    @property
    def truncated(self) -> bool:
        return self.response is not None and self.response.truncated


class ReadBounds(NamedTuple):
    """How a page is read: the first `limit` bytes, for a `caller`, whose URL has `asked_port`.

    No request begins after `deadline`, by the event loop's time.
    """

    limit: int
    asked_port: int
    caller: str
    deadline: float


@dataclass(eq=False)
class SiteReader:
    """Reads pages by permits, as the crawler that `user_agent` names.

    `fetch` is Fetcher.read. `now` gives Unix seconds. `refused` is called with "sites" for what is not admitted.
    """

    permits: Permits
    fetch: Callable[[Target, int, int, str], Awaitable[Received | Access]]
    known: Callable[[], AgentDirectory]
    now: Callable[[], float]
    user_agent: str
    refused: Refused = ignore

    def __post_init__(self) -> None:
        self._shares = CallerShares(
            AT_ONCE, PER_CALLER, refusal("sites", self.refused, "Too many sites are being read", 5)
        )

    def admitted(self, caller: str) -> AbstractContextManager[None]:
        """Within the block, pages are read for a caller. Raises Overloaded if too many are, for it or for all."""
        return self._shares.admitted(caller)

    async def read(self, target: Target, bounds: ReadBounds) -> SitePage:
        """Read a page. Raises Busy."""
        for _ in range(REDIRECT_LIMIT + 1):
            page = await self._read_one(target, bounds)
            if page.response is None or page.response.status not in REDIRECTS:
                return page
            if page.response.location is None:
                return page._replace(response=None, outcome=ReadOutcome.FAILED, detail="It redirects to no web page.")
            target = page.response.location
        return SitePage(ReadOutcome.FAILED, target, f"It redirects more than {REDIRECT_LIMIT} times.")

    async def _read_one(self, target: Target, bounds: ReadBounds) -> SitePage:
        wait = max(0.0, bounds.deadline - asyncio.get_running_loop().time())
        agent = agent_from(self.user_agent, self.known())
        question = Question(target, agent, dialect_from(None, agent), wait=wait, caller=bounds.caller)
        refusal = ""

        def note(decision: Decision) -> bytes:
            nonlocal refusal
            refusal = _refusal(decision)
            return decision.verdict.permission.encode()

        permit = await self.permits.request(PermitRequest(question, bounds.caller, 1.0, wait), note)
        if permit.grant is None:
            outcome = ReadOutcome.DEFERRED if permit.answer == Permission.DEFER.encode() else ReadOutcome.DISALLOWED
            return SitePage(outcome, target, refusal)
        slot = permit.grant.result
        if not isinstance(slot, Slot):
            return SitePage(
                ReadOutcome.DEFERRED, target, f"The pace of {target.origin.host} leaves no time for it now."
            )
        await asyncio.sleep(slot.wait)
        return await self._fetch_at(SlotRef(target.origin.key, slot.key, slot.name, slot.go_at), target, bounds)

    async def _fetch_at(self, slot: SlotRef, target: Target, bounds: ReadBounds) -> SitePage:
        begun = time.monotonic()
        try:
            received = await self.fetch(target, bounds.limit, bounds.asked_port, bounds.caller)
        except Busy:
            await self.permits.report(Report(slot, Outcome(None, 0.0, None, True, slot.key.agent)))
            raise
        elapsed, wait = time.monotonic() - begun, 0
        if isinstance(received, Received):
            wait = retry_after(received.headers, self.now()) or 0
        status = received.status if isinstance(received, Received | Unreachable) else None
        await self.permits.report(Report(slot, Outcome(status, wait, elapsed, False, slot.key.agent)))
        if not isinstance(received, Received):
            return SitePage(ReadOutcome.FAILED, target, _failure(received))
        if received.body is None and received.status not in REDIRECTS:
            return SitePage(ReadOutcome.FAILED, target, f"It answers {received.status}.")
        return SitePage(ReadOutcome.READ, target, response=received)


def _refusal(decision: Decision) -> str:
    question, verdict = decision.question, decision.verdict
    if verdict.permission is Permission.DEFER:
        return f"The robots.txt of {question.target.origin.host} could not be fetched."
    if verdict.reason in _NOT_BY_FILE:
        return _NOT_BY_FILE[verdict.reason]
    by = "robots.txt" if verdict.rule is None else f"line {verdict.rule.directive.line} of robots.txt"
    return f"It is closed to {question.agent.token} by {by}."


def _failure(access: Access) -> str:
    match access:
        case Blocked():
            return _NOT_PUBLIC
        case Unreachable(detail=str(detail)):
            return f"It could not be fetched: {detail}."
        case Unreachable(cause=cause):
            return f"It could not be fetched: {cause.replace('_', ' ')}."
        case unknown:
            raise TypeError(unknown)
