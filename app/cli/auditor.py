"""Asks a service about the entries of a log, and finds those that robots.txt did not allow at their time."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from app.cli.access_log import BadLine, LoggedFetch, NotAuditable, read_entry
from app.cli.client import Answer, ServiceClient
from app.cli.exit_codes import Failed
from app.cli.patient_client import PatientClient

ALLOWED: Final = "allowed"
FORBIDDEN: Final = "that should not have been fetched"
UNKNOWN: Final = "unknown"
UNANSWERED: Final = "without an answer"
UNREADABLE: Final = "unreadable"
"""What lines are counted as, beside the reasons of NotAuditable."""

_INVALID = frozenset({400, 414, 422, 431})


class Auditor:
    """Audits lines, `concurrency` at a time; `counts` has how many were what.

    `found` is called with each entry that should not have been fetched, and `bad` with each line that cannot be read.
    """

    def __init__(
        self,
        service: ServiceClient,
        *,
        concurrency: int,
        agent: str | None,
        found: Callable[[dict[str, Any]], None],
        bad: Callable[[int, str], None],
        done: Callable[[], None],
    ) -> None:
        self._service = service
        self._client = PatientClient(service)
        self._concurrency = concurrency
        self._agent = agent
        self._found = found
        self._bad = bad
        self._done = done
        self.counts: Counter[str] = Counter()

    async def run(self, lines: AsyncIterator[tuple[int, bytes]]) -> None:
        """Audit every line. Raise Failed if the service cannot be used."""
        queue = asyncio.Queue[tuple[int, bytes] | None](1)
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._concurrency):
                    tasks.create_task(self._work(queue))
                async for line in lines:
                    await queue.put(line)
                for _ in range(self._concurrency):
                    await queue.put(None)
        except ExceptionGroup as group:
            failed = group.exceptions[0]
        else:
            return
        raise failed

    async def _work(self, queue: asyncio.Queue[tuple[int, bytes] | None]) -> None:
        while (line := await queue.get()) is not None:
            number, written = line
            if not written.strip():
                continue
            try:
                self.counts[await self._audit(number, read_entry(written, self._agent))] += 1
            except NotAuditable as reason:
                self.counts[str(reason)] += 1
            except BadLine as error:
                self.counts[UNREADABLE] += 1
                self._bad(number, str(error))
            self._done()

    async def _audit(self, number: int, entry: LoggedFetch) -> str:
        """What the line is counted as. Raise BadLine and Failed."""
        parameters = {"url": entry.url, "agent": entry.agent, "as_of": entry.time}
        if entry.dialect is not None:
            parameters["dialect"] = entry.dialect
        answer = await self._client.get("/v1/allowed", parameters)
        if answer is None:
            return UNANSWERED
        if answer.status in _INVALID:
            raise BadLine(self._member(answer, "detail"))
        if answer.status == 404 and self._member(answer, "type").endswith(":no-version"):
            return UNKNOWN
        content = self._service.object_in(answer, expected="verdict")
        if content["verdict"] == "allow":
            return ALLOWED
        finding = {
            "line": number,
            "url": entry.url,
            "agent": entry.agent,
            "time": entry.time,
            **{name: content[name] for name in ("verdict", "reason", "rule")},
            "version": await self._version(entry),
            "override": entry.override,
        }
        self._found(finding)
        return FORBIDDEN

    async def _version(self, entry: LoggedFetch) -> str | None:
        """The id of the version of the file that was in use."""
        answer = await self._client.get("/v1/robots/history", {"url": entry.url})
        if answer is None:
            raise Failed(f"{self._service.url} stays busy.")
        # Instants of one form, in UTC: they sort as text.
        versions = self._service.object_in(answer, expected="versions")["versions"]
        return next((str(it["id"]) for it in versions if it["from"] <= entry.time), None)

    def _member(self, answer: Answer, name: str) -> str:
        try:
            return str(json.loads(answer.content)[name])
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._service.not_this_service(answer) from None
