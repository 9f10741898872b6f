# scripts/generate.py made this module from _async/client.py; change that one.
"""A plain client for crawlers that send their requests themselves."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial

from robots_decisions._default_http import default_http
from robots_decisions._io import Http, each
from robots_decisions._sync.permit_client import ANSWER_TIMEOUT, PermitClient
from robots_decisions._sync.service import Service
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


class Client:
    """Asks the service at the URL `service`. `agent` is the crawler to ask as, unless a call names another.

    With `unreachable="wait"`, it is asked until `max_wait` seconds are over while it does not respond; with "allow",
    `permit` also grants what it could not ask. `http` sends the requests; the default is the first of httpx2 and httpx
    that is installed. Raises PermitError, and ValueError for invalid arguments.
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
        http: Http | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = Options(agent, max_wait, unreachable)
        self._agent = agent
        self._service = Service(service, key, http or default_http())
        self._permits = PermitClient(self._service, caller=caller, monotonic=monotonic, sleep=sleep)
        self._monotonic = monotonic
        self._sleep = sleep

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release unused slots, then close the connections."""
        self._permits.close()

    def allowed(self, url: str, agent: str | None = None) -> Verdict:
        """The verdict on a page, which is true if it may be fetched. It reserves no slot."""
        options = self._options
        asked = agent_of(url, agent or self._agent)
        answer = self._permits.verdict(url, asked, options.max_wait, retry=options.retry)
        return options.verdict(url, answer)

    def batch(
        self, asked: Iterable[Asked], *, fields: Sequence[str] | None = None
    ) -> Generator[Verdict | Unanswered, None, None]:
        """The verdicts on any number of pages, in their order. A question without a verdict fails alone.

        While the service is busy, or with `unreachable="wait"` does not respond, what was not answered is asked again,
        until no answer has come for `max_wait` seconds. With `fields`, `members` has no more than these and those of a
        verdict, which costs a fraction of whole answers.
        """
        return self._in_batches(asked, partial(VerdictBatch, fields, self._agent))

    def bundle(
        self,
        urls: Iterable[str],
        *,
        profile: str | None = None,
        as_of: str | None = None,
        fetch: bool = False,
    ) -> Generator[BundleRow | Unanswered, None, None]:
        """The robots.txt of the origins of any number of URLs, in their order; see BundleRow.

        `profile`: the fetch profile that they were fetched with. `as_of`: an RFC 3339 instant in the past, for the
        versions that were stored then. `fetch`: let the service fetch what is missing or due. An origin of which
        nothing is known is Unanswered, with the status 404. A busy service is asked again as by `batch`.
        """
        return self._in_batches(urls, partial(RowBatch, profile, as_of, fetch))

    @contextmanager
    def permit(self, url: str, agent: str | None = None, *, max_wait: float | None = None) -> Iterator[Permit]:
        """Wait for the slot of a page. What is reported to the permit is sent to the service at the end."""
        options = self._options
        wait = options.max_wait if max_wait is None else checked_seconds(max_wait)
        asked = agent_of(url, agent or self._agent)
        answer = self._permits.permit(url, asked, wait, retry=options.retry)
        permit = Permit(options.grant(url, answer), self._monotonic)
        try:
            yield permit
        finally:
            if permit.grant is not None and permit.released:
                self._permits.release(permit.grant)
            elif permit.grant is not None and permit.grant.to_report(permit.status):
                permit.backoff = self._permits.report(permit.grant, permit.status, permit.retry_after, permit.elapsed)

    def _in_batches(
        self, asked: Iterable[Asks], new: Callable[[], Batch[Asks, Answered]]
    ) -> Generator[Answered, None, None]:
        batch = new()
        for one in each(asked):
            batch.add(one)
            if batch.is_full():
                with closing(self._answers(batch)) as answers:
                    for answer in answers:
                        yield answer
                batch = new()
        with closing(self._answers(batch)) as answers:
            for answer in answers:
                yield answer

    def _answers(self, batch: Batch[Asks, Answered]) -> Generator[Answered, None, None]:
        """The answers to a batch. What was not answered is asked again, until none has come for `max_wait` seconds."""
        answered, total = 0, len(batch.lines)
        max_wait, ends, pause = self._options.max_wait, 0.0, FIRST_RETRY_DELAY
        while answered < total:
            before = answered
            try:
                with closing(self._rest(batch, answered)) as answers:
                    for answer in answers:
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
            self._sleep(seconds)

    def _rest(self, batch: Batch[Asks, Answered], answered: int) -> Generator[Answered, None, None]:
        """The answers to the questions of a batch after the first `answered`. Raise Unavailable."""
        splitter, total = LineSplitter(), len(batch.lines)
        content = b"".join(batch.lines[answered:])
        with self._service.stream("POST", batch.path, content, ANSWER_TIMEOUT, LINES) as reply:
            if reply.status != 200:
                problem = bytearray()
                for piece in reply.pieces:
                    problem += piece[:PROBLEM_LIMIT]
                    if len(problem) >= PROBLEM_LIMIT:
                        break
                raise refusal(reply.status, reply.fields, json_value(bytes(problem)))
            for piece in reply.pieces:
                for line in splitter.feed(piece):
                    if answered == total:
                        raise Unavailable("it has more answers than questions", is_final=True)
                    yield batch.parse(answered, line)
                    answered += 1
        if answered < total:
            raise Unavailable(f"{total - answered} answers are missing")
