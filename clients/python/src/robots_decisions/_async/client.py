"""A plain client for crawlers that send their requests themselves."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial

from robots_decisions._async.permit_client import ANSWER_TIMEOUT, AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions._default_http import default_async_http
from robots_decisions._io import AsyncHttp, async_each
from robots_decisions.bundle_rows import BundleRow, RowBatch
from robots_decisions.errors import MAX_WAIT, Options, ServiceUnavailable, Unreachable, checked_seconds
from robots_decisions.outcomes import Permit
from robots_decisions.parsing import json_value
from robots_decisions.permits import FIRST_RETRY_DELAY, LAST_RETRY_DELAY, Unavailable, refusal
from robots_decisions.verdicts import (
    LINES,
    PROBLEM_LIMIT,
    Answered,
    Asked,
    Asks,
    Batch,
    LineSplitter,
    Unanswered,
    Verdict,
    VerdictBatch,
    agent_of,
)


class AsyncClient:
    """Asks the service at the URL `service`. `agent` is the crawler to ask as, unless a call names another.

    With `unreachable="wait"`, it is asked until `max_wait` seconds are over while it does not respond; with "allow",
    `permit` also grants what it could not ask. `http` sends the requests; the default is the first of httpx2, httpx and
    aiohttp that is installed. Raises PermitError, and ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        *,
        key: str | None = None,
        agent: str | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        http: AsyncHttp | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._options = Options(agent, max_wait, unreachable)
        self._agent = agent
        self._service = AsyncService(service, key, http or default_async_http())
        self._permits = AsyncPermitClient(self._service, caller=caller, monotonic=monotonic, sleep=sleep)
        self._monotonic = monotonic
        self._sleep = sleep

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release unused slots, then close the connections."""
        await self._permits.aclose()

    async def allowed(self, url: str, agent: str | None = None) -> Verdict:
        """The verdict on a page, which is true if it may be fetched. It reserves no slot."""
        options = self._options
        asked = agent_of(url, agent or self._agent)
        answer = await self._permits.verdict(url, asked, options.max_wait, retry=options.retry)
        return options.verdict(url, answer)

    def batch(
        self, asked: AsyncIterable[Asked] | Iterable[Asked], *, fields: Sequence[str] | None = None
    ) -> AsyncGenerator[Verdict | Unanswered, None]:
        """The verdicts on any number of pages, in their order. A question without a verdict fails alone.

        While the service is busy, or with `unreachable="wait"` does not respond, what was not answered is asked again,
        until no answer has come for `max_wait` seconds. With `fields`, `members` has no more than these and those of a
        verdict, which costs a fraction of whole answers.
        """
        return self._in_batches(asked, partial(VerdictBatch, fields, self._agent))

    def bundle(
        self,
        urls: AsyncIterable[str] | Iterable[str],
        *,
        profile: str | None = None,
        as_of: str | None = None,
        fetch: bool = False,
    ) -> AsyncGenerator[BundleRow | Unanswered, None]:
        """The robots.txt of the origins of any number of URLs, in their order; see BundleRow.

        `profile`: the fetch profile that they were fetched with. `as_of`: an RFC 3339 instant in the past, for the
        versions that were stored then. `fetch`: let the service fetch what is missing or due. An origin of which
        nothing is known is Unanswered, with the status 404. A busy service is asked again as by `batch`.
        """
        return self._in_batches(urls, partial(RowBatch, profile, as_of, fetch))

    @asynccontextmanager
    async def permit(
        self, url: str, agent: str | None = None, *, max_wait: float | None = None
    ) -> AsyncIterator[Permit]:
        """Wait for the slot of a page. What is reported to the permit is sent to the service at the end."""
        options = self._options
        wait = options.max_wait if max_wait is None else checked_seconds(max_wait)
        asked = agent_of(url, agent or self._agent)
        answer = await self._permits.permit(url, asked, wait, retry=options.retry)
        permit = Permit(options.grant(url, answer), self._monotonic)
        try:
            yield permit
        finally:
            if permit.grant is not None and permit.released:
                self._permits.release(permit.grant)
            elif permit.grant is not None and permit.grant.to_report(permit.status):
                permit.backoff = await self._permits.report(
                    permit.grant, permit.status, permit.retry_after, permit.elapsed
                )

    async def _in_batches(
        self, asked: AsyncIterable[Asks] | Iterable[Asks], new: Callable[[], Batch[Asks, Answered]]
    ) -> AsyncGenerator[Answered, None]:
        batch = new()
        async for one in async_each(asked):
            batch.add(one)
            if batch.is_full():
                async with aclosing(self._answers(batch)) as answers:
                    async for answer in answers:
                        yield answer
                batch = new()
        async with aclosing(self._answers(batch)) as answers:
            async for answer in answers:
                yield answer

    async def _answers(self, batch: Batch[Asks, Answered]) -> AsyncGenerator[Answered, None]:
        """The answers to a batch. What was not answered is asked again, until none has come for `max_wait` seconds."""
        answered, total = 0, len(batch.lines)
        max_wait, ends, pause = self._options.max_wait, 0.0, FIRST_RETRY_DELAY
        while answered < total:
            before = answered
            try:
                async with aclosing(self._rest(batch, answered)) as answers:
                    async for answer in answers:
                        answered += 1
                        yield answer
                return
            except Unavailable as error:
                now = self._monotonic()
                if answered > before or not ends:
                    ends, pause = now + max_wait, FIRST_RETRY_DELAY
                seconds = pause if error.seconds is None else error.seconds
                waits = error.seconds is not None or (self._options.retry and not error.is_final)
                if not waits or now + seconds > ends:
                    raise ServiceUnavailable(f"{batch.what.format(total - answered, total)}: {error}.") from None
                pause = min(pause * 2, LAST_RETRY_DELAY)
            await self._sleep(seconds)

    async def _rest(self, batch: Batch[Asks, Answered], answered: int) -> AsyncGenerator[Answered, None]:
        """The answers to the questions of a batch after the first `answered`. Raise Unavailable."""
        splitter, total = LineSplitter(), len(batch.lines)
        content = b"".join(batch.lines[answered:])
        async with self._service.stream("POST", batch.path, content, ANSWER_TIMEOUT, LINES) as reply:
            if reply.status != 200:
                problem = bytearray()
                async for piece in reply.pieces:
                    problem += piece[:PROBLEM_LIMIT]
                    if len(problem) >= PROBLEM_LIMIT:
                        break
                raise refusal(reply.status, reply.fields, json_value(bytes(problem)))
            async for piece in reply.pieces:
                for line in splitter.feed(piece):
                    if answered == total:
                        raise Unavailable("it has more answers than questions", is_final=True)
                    yield batch.parse(answered, line)
                    answered += 1
        if answered < total:
            raise Unavailable(f"{total - answered} answers are missing")
