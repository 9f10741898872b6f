"""A plain client for crawlers that send their requests themselves."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from functools import partial

from robots_decisions._async.permit_client import AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions._default_http import default_async_http
from robots_decisions._io import AsyncHttp, async_each, check_asyncio
from robots_decisions.bundle_rows import BundleRow, RowBatch
from robots_decisions.conversation import Patience
from robots_decisions.errors import MAX_WAIT, Options, Unreachable
from robots_decisions.outcomes import Permit
from robots_decisions.parsing import json_value
from robots_decisions.permits import ANSWER_LIMIT, Unavailable, not_ours, refusal, silent
from robots_decisions.question import Members, Names, asking, checked_seconds
from robots_decisions.verdicts import (
    LINES,
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
    """Asks the service at the URL `service`, as the crawler `agent`, for `purpose`, by `dialect`, unless a call names
    others.

    Agents after the first are fallbacks. With `enforce`, a page whose site refuses a purpose is disallowed; else
    answers only say so, unless the service enforces purposes. `max_age`: a robots.txt that was fetched longer ago, in
    seconds, is fetched again first. With `unreachable="wait"`, the service is asked until `max_wait` seconds are over
    while it does not respond; with "allow", `permit` then gives slots of the client's own pace. With `sign`, permits
    have the header fields of a signed GET of their page, if the service can sign it (Web Bot Auth). `http` sends the
    requests; the default is the first of httpx2, httpx and aiohttp that is installed. Raises PermitError, and
    ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        *,
        key: str | None = None,
        agent: Names | None = None,
        purpose: Names | None = None,
        enforce: bool = False,
        dialect: str | None = None,
        max_age: float | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        sign: bool = False,
        http: AsyncHttp | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._options = Options(
            agent=agent,
            purpose=purpose,
            enforce=enforce,
            dialect=dialect,
            max_age=max_age,
            caller=caller,
            max_wait=max_wait,
            unreachable=unreachable,
            sign=sign,
        )
        self._service = AsyncService(service, key, http or default_async_http())
        self._permits = AsyncPermitClient(self._service, self._options, monotonic=monotonic, sleep=sleep)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release unused slots, send what was not reported yet, then close the connections."""
        await self._permits.aclose()

    async def allowed(
        self,
        url: str,
        agent: Names | None = None,
        *,
        purpose: Names | None = None,
        enforce: bool | None = None,
        dialect: str | None = None,
        max_age: float | None = None,
        as_of: str | datetime | None = None,
        explain: bool = False,
    ) -> Verdict:
        """The verdict on a page, which is true if it may be fetched. It reserves no slot.

        `as_of`: by the robots.txt that was stored at that instant. With `explain`, `members` has more.
        """
        own = asking(agent=agent, purpose=purpose, enforce=enforce, dialect=dialect, max_age=max_age, as_of=as_of)
        return await self._permits.verdict(url, self._members(url, own), explain=explain)

    def batch(
        self,
        asked: AsyncIterable[Asked] | Iterable[Asked],
        *,
        fields: Names | None = None,
        wait: float | None = None,
    ) -> AsyncGenerator[Verdict | Unanswered, None]:
        """The verdicts on any number of pages, in their order. A question without a verdict fails alone.

        While the service is busy, or with `unreachable="wait"` does not respond, what was not answered is asked again,
        until no answer has come for `max_wait` seconds. With `fields`, `members` has no more than these and those of a
        verdict, which costs a fraction of whole answers. `wait`: the seconds that an answer may wait for a fetch, by
        default two thirds of `max_wait`; with 0, what is not in the cache has the reason `pending` and is fetched.
        """
        options = self._options
        own_wait = None if wait is None else checked_seconds("wait", wait)
        return self._in_batches(asked, partial(VerdictBatch, fields, options.members, options.max_wait, wait=own_wait))

    def bundle(
        self,
        urls: AsyncIterable[str] | Iterable[str],
        *,
        profile: str | None = None,
        as_of: str | datetime | None = None,
        fetch: bool = False,
    ) -> AsyncGenerator[BundleRow | Unanswered, None]:
        """The robots.txt of the origins of any number of URLs, in their order; see BundleRow.

        `profile`: the fetch profile that they were fetched with. `as_of`: an instant in the past, for the versions that
        were stored then. `fetch`: let the service fetch what is missing or due. An origin of which nothing is known is
        Unanswered, with the status 404. A busy service is asked again as by `batch`.
        """
        own = asking(as_of=as_of)
        if profile is not None:
            own["profile"] = profile
        return self._in_batches(urls, partial(RowBatch, own, fetch, self._options.max_wait))

    @asynccontextmanager
    async def permit(
        self,
        url: str,
        agent: Names | None = None,
        *,
        max_wait: float | None = None,
        purpose: Names | None = None,
        enforce: bool | None = None,
        dialect: str | None = None,
        max_age: float | None = None,
        accept_signature: str | None = None,
    ) -> AsyncIterator[Permit]:
        """Wait for the slot of a page. What is reported to the permit is sent to the service at the end.

        With the Accept-Signature of a response of the page, `signed` is as the page asks.
        """
        own = asking(agent=agent, purpose=purpose, enforce=enforce, dialect=dialect, max_age=max_age)
        wait = None if max_wait is None else checked_seconds("max_wait", max_wait)
        slot = await self._permits.permit(url, self._members(url, own), wait, accept_signature=accept_signature)
        permit = Permit(slot, self._permits.monotonic)
        try:
            yield permit
        finally:
            if permit.released:
                self._permits.release(slot)
            elif permit.status:
                price = None if permit.price is None else (permit.price, url)
                permit.backoff = await self._permits.report(
                    slot, permit.status, permit.retry_after, permit.elapsed, price
                )

    def _members(self, url: str, own: Members) -> Members:
        members = {**self._options.members, **own}
        agent_of(url, members)
        return members

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
        check_asyncio()
        answered, total = 0, len(batch.lines)
        options, waits, patience = self._options, self._permits.waits, self._patience()
        while answered < total:
            before = answered
            try:
                async with aclosing(self._rest(batch, answered)) as answers:
                    async for answer in answers:
                        if isinstance(answer, Verdict):
                            waits.heard(answer.url, answer)
                        answered += 1
                        yield answer
                return
            except Unavailable as error:
                failure = error.failure
                if answered > before:
                    patience = self._patience()
                url = batch.urls[min(answered, total - 1)]
                waits.heard(url, failure)
                seconds = patience.after(failure)
                if seconds is None:
                    pages = f"{max(total - answered, 1)} of {total} {batch.plural}"
                    raise options.errors.error(pages, self._service.url, failure, batch.what) from None
            with waits.counted(url, failure):
                await self._permits.sleep(seconds)

    def _patience(self) -> Patience:
        return Patience(self._options.max_wait, retry=self._options.retries, monotonic=self._permits.monotonic)

    async def _rest(self, batch: Batch[Asks, Answered], answered: int) -> AsyncGenerator[Answered, None]:
        """The answers to the questions of a batch after the first `answered`. Raise Unavailable."""
        splitter, first, total = LineSplitter(), answered, len(batch.lines)
        content = b"".join(batch.lines[answered:])
        async with self._service.stream("POST", batch.path, content, batch.timeout, LINES) as reply:
            if reply.status != 200:
                problem = bytearray()
                async for piece in reply.pieces:
                    problem += piece
                    if len(problem) > ANSWER_LIMIT:
                        raise Unavailable(not_ours(f"more than {ANSWER_LIMIT} bytes"))
                raise refusal(reply.status, reply.fields, json_value(bytes(problem)))
            async for piece in reply.pieces:
                for line in splitter.feed(piece):
                    if answered == total:
                        raise Unavailable(not_ours("more answers than questions"))
                    yield batch.parse(answered, line)
                    answered += 1
            if answered == first and splitter.rest:
                batch.parse(answered, splitter.rest)  # another server says no line, but something
        if answered < total:
            raise silent(f"leaves {total - answered} of {total - first} questions unanswered.")
