"""Asks a service about the entries of a log, and finds those that robots.txt did not allow at their time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from app.cli.access_log import NO_URL, BadLine, Defaults, LoggedFetch, NotAuditable, read_entry
from app.cli.client import AnswerTooLong, ServiceClient
from app.cli.exit_codes import Failed
from app.cli.patient_client import BUSY, REQUEST_ATTEMPTS, PatientClient
from app.error_values import as_value

ALLOWED: Final = "allowed"
FORBIDDEN: Final = "that should not have been fetched"
UNKNOWN: Final = "unknown"
UNREADABLE: Final = "unreadable"
"""The kinds of lines that are counted, besides the texts of NotAuditable."""

UNDECIDED = frozenset({UNKNOWN, NO_URL})
"""The kinds of lines that may have been wrong."""

REQUEST_LINES, CHARACTERS = 500, 512 * 1024
"""Lines of the largest request, and characters of their URLs and agents, within the limits of the service."""

PARTIAL_DELAY = 1.0
"""Seconds to pause when the service could not answer all lines of a request."""

_INVALID = frozenset({413, 422})

_Line: TypeAlias = tuple[int, LoggedFetch | BadLine | NotAuditable]


class Finding(NamedTuple):
    """A line and the answer to it, whose verdict is not allow."""

    number: int
    entry: LoggedFetch
    answer: Mapping[str, Any]


class Auditor:
    """Audits lines, in requests of up to REQUEST_LINES, `concurrency` at a time; `counts` has the lines by kind.

    In the order of the log, `found` is called for each page that should not have been fetched, and `bad` for each line
    that cannot be read. `done` is called with the number of lines that were audited since its last call.
    """

    def __init__(
        self,
        service: ServiceClient,
        *,
        concurrency: int,
        defaults: Defaults,
        found: Callable[[Finding], None],
        bad: Callable[[int, str], None],
        done: Callable[[int], None],
    ) -> None:
        self._service = service
        self._client = PatientClient(service)
        self._room = asyncio.Semaphore(concurrency)
        self._defaults = defaults
        self._found = found
        self._bad = bad
        self._done = done
        self.counts: Counter[str] = Counter()

    async def run(self, blocks: AsyncIterator[list[tuple[int, bytes]]]) -> None:
        """Audit every line. Raise Failed if the service cannot be used, or the log cannot be read to its end."""
        unread: Failed | None = None
        before: asyncio.Task[None] | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                try:
                    async for block in blocks:
                        for batch in self._batches(block):
                            await self._room.acquire()
                            before = tasks.create_task(self._audit(batch, before))
                except Failed as error:
                    unread = error
        except ExceptionGroup as group:
            failed = group.exceptions[0]
        else:
            if unread is None:
                return
            failed = unread
        raise failed

    def _batches(self, block: Iterable[tuple[int, bytes]]) -> Iterator[list[_Line]]:
        """The lines of a block, in requests; blank lines are left out."""
        batch: list[_Line] = []
        characters = 0
        for number, written in block:
            if not written.strip():
                continue
            entry = self._read(written)
            size = len(entry.url) + len(entry.agent) if isinstance(entry, LoggedFetch) else 0
            if len(batch) >= REQUEST_LINES or characters + size > CHARACTERS:
                yield batch
                batch, characters = [], 0
            batch.append((number, entry))
            characters += size
        if batch:
            yield batch

    def _read(self, written: bytes) -> LoggedFetch | BadLine | NotAuditable:
        try:
            return read_entry(written, self._defaults)
        except (BadLine, NotAuditable) as error:
            return as_value(error)

    async def _audit(self, batch: Sequence[_Line], before: asyncio.Task[None] | None) -> None:
        """Audit lines, and report them once the task `before` has ended. Raise Failed, which names the first line."""
        failed: Failed | None = None
        answers: Mapping[int, Mapping[str, Any]] = {}
        try:
            answers = await self._answers({number: it for number, it in batch if isinstance(it, LoggedFetch)})
        except Failed as error:
            failed = error
        if before is not None:
            await before
        if failed is not None:
            raise Failed(f"{failed} The audit ended before line {batch[0][0]}.")
        for number, entry in batch:
            self.counts[self._report(number, entry, answers)] += 1
        self._done(len(batch))
        self._room.release()

    def _report(
        self, number: int, entry: LoggedFetch | BadLine | NotAuditable, answers: Mapping[int, Mapping[str, Any]]
    ) -> str:
        """Report a line; return its kind. Raise Failed for a problem that is not about the line."""
        if isinstance(entry, NotAuditable):
            return str(entry)
        if isinstance(entry, BadLine):
            self._bad(number, str(entry))
            return UNREADABLE
        answer = answers[number]
        problem = answer.get("problem")
        if problem is None:
            if answer["verdict"] == "allow":
                return ALLOWED
            self._found(Finding(number, entry, answer))
            return FORBIDDEN
        if problem["status"] in _INVALID:
            self._bad(number, problem["detail"])
            return UNREADABLE
        if problem["type"].endswith(":no-version"):
            return UNKNOWN
        raise Failed(f"{self._service.url} answers {problem['status']} for line {number}: {problem['detail']}")

    async def _answers(self, entries: Mapping[int, LoggedFetch]) -> Mapping[int, Mapping[str, Any]]:
        """The answers to the entries, under their numbers. Raise Failed."""
        answers: dict[int, Mapping[str, Any]] = {}
        remaining = dict(entries)
        attempts = 0
        while remaining:
            if attempts == REQUEST_ATTEMPTS:
                raise self._stays_busy()
            found = await self._ask(list(remaining.values()))
            answered = {number: answer for number, answer in zip(remaining, found, strict=True) if not _is_busy(answer)}
            attempts = attempts + 1 if not answered else 0
            answers |= answered
            remaining = {number: entry for number, entry in remaining.items() if number not in answered}
            if remaining:
                self._client.pause(PARTIAL_DELAY)
        return answers

    async def _ask(self, entries: Sequence[LoggedFetch]) -> Sequence[Mapping[str, Any]]:
        """The answers to the entries, or the problems in their place. Raise Failed."""
        items = [
            {"url": it.url, "agent": it.agent, "as_of": it.time}
            | ({} if it.dialect is None else {"dialect": it.dialect})
            for it in entries
        ]
        try:
            answer = await self._client.post("/v1/allowed", {"items": items})
        except AnswerTooLong:
            if len(entries) == 1:
                raise
            half = len(entries) // 2
            return [*await self._ask(entries[:half]), *await self._ask(entries[half:])]
        if answer is None:
            raise self._stays_busy()
        found = self._service.object_in(answer, expected="answers")["answers"]
        if not isinstance(found, list) or len(found) != len(entries) or not all(map(_is_answer, found)):
            raise self._service.not_this_service(answer)
        return found

    def _stays_busy(self) -> Failed:
        return Failed(f"{self._service.url} stays busy.")


def _is_answer(found: object) -> bool:
    match found:
        case {"problem": {"status": int(), "type": str(), "detail": str()}}:
            return True
        case {"problem": _}:
            return False
        case {"verdict": str()}:
            return True
        case _:
            return False


def _is_busy(answer: Mapping[str, Any]) -> bool:
    problem = answer.get("problem")
    return problem is not None and problem["status"] in BUSY
