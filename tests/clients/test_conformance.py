"""The cases of clients/conformance.json, played by each client of Python over each HTTP library."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import httpx
import httpx2
import pytest
from robots_decisions import (
    AsyncClient,
    Client,
    Deferred,
    Disallowed,
    Misconfigured,
    NotUnderstood,
    PermitError,
    Question,
    ServiceUnavailable,
    Unanswered,
    Verdict,
)
from robots_decisions.aiohttp import AiohttpHttp
from robots_decisions.httpx import AsyncHttpxHttp, HttpxHttp
from robots_decisions.httpx2 import AsyncHttpx2Http, Httpx2Http
from robots_decisions.requests import RequestsHttp

from tests.clients.conformance import case_names, conformance

AT_ONCE = 8
ERRORS = {
    Disallowed: "disallowed",
    Deferred: "deferred",
    NotUnderstood: "not_understood",
    Misconfigured: "misconfigured",
    ServiceUnavailable: "unavailable",
}
TRANSPORTS: dict[Any, Any] = {
    AsyncHttpxHttp: httpx.AsyncHTTPTransport,
    AsyncHttpx2Http: httpx2.AsyncHTTPTransport,
    HttpxHttp: httpx.HTTPTransport,
    Httpx2Http: httpx2.HTTPTransport,
}
SYNCHRONOUS = {HttpxHttp, Httpx2Http, RequestsHttp}

_lines: ContextVar[list[str]] = ContextVar("lines")


class _Log(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _lines.get([]).append(record.getMessage())


@pytest.fixture
def log() -> Iterator[None]:
    """Each case has the lines of its own client."""
    logger, handler = logging.getLogger("robots_decisions"), _Log()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)


def described(answer: Verdict | Unanswered) -> dict[str, Any]:
    if isinstance(answer, Unanswered):
        return {**vars(answer), "allowed": bool(answer)}
    retry_at = answer.retry_at and answer.retry_at.isoformat()
    return {**vars(answer), "allowed": bool(answer), "retry_at": retry_at}


def failed(error: PermitError, answers: list[Any]) -> dict[str, Any]:
    members = {name: getattr(error, name, None) for name in ("reason", "rule", "line", "seconds")}
    retry_at = getattr(error, "retry_at", None)
    retry_in = None if retry_at is None else retry_at.timestamp() - time.time()
    kind = next(name for type_, name in ERRORS.items() if isinstance(error, type_))
    return {**members, "retry_in": retry_in, "error": kind, "message": str(error), "answers": answers}


def question_of(asked: Any) -> Any:
    return asked if isinstance(asked, str) else Question(**asked)


async def called(client: AsyncClient, call: Mapping[str, Any]) -> dict[str, Any]:
    how = {key: value for key, value in call.items() if key not in {"permit", "allowed", "batch", "report", "release"}}
    answers: list[Any] = []
    try:
        if "batch" in call:
            async for answer in client.batch(map(question_of, call["batch"])):
                answers.append(described(answer))  # noqa: PERF401 - those before an error count
            return {"answers": answers}
        if "allowed" in call:
            return described(await client.allowed(call["allowed"], **how))
        async with client.permit(call["permit"], **how) as permit:
            if "report" in call:
                permit.report(**call["report"])
            if "release" in call:
                permit.release()
        signed = permit.signed and {name.lower(): value for name, value in permit.signed.items()}
        return {"granted": permit.granted, "interval": permit.interval, "version": permit.version, "signed": signed}
    except PermitError as error:
        return failed(error, answers)


class InThread:
    """The synchronous client as an asynchronous one whose calls run in threads."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def aclose(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def allowed(self, *arguments: Any, **how: Any) -> Verdict:
        return await asyncio.to_thread(lambda: self._client.allowed(*arguments, **how))

    async def batch(self, asked: Any) -> AsyncIterator[Verdict | Unanswered]:
        answers = self._client.batch(asked)
        while (answer := await asyncio.to_thread(next, answers, None)) is not None:
            yield answer

    @asynccontextmanager
    async def permit(self, *arguments: Any, **how: Any) -> AsyncIterator[Any]:
        manager = self._client.permit(*arguments, **how)
        permit = await asyncio.to_thread(manager.__enter__)
        yield permit
        await asyncio.to_thread(manager.__exit__, None, None, None)


def client_of(http: Any, service: str, **options: Any) -> Any:
    """The client that uses this HTTP library."""
    unsafe = {}
    if http in TRANSPORTS:  # without the certificates of authorities, which are slow to load
        unsafe["transport"] = TRANSPORTS[http](verify=False)
    if http in SYNCHRONOUS:
        return InThread(Client(service, http=http(**unsafe), **options))
    return AsyncClient(service, http=http(**unsafe), **options)


async def played(http: Any, case: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """What came of the calls of a case, and the lines of the log."""
    lines: list[str] = []
    _lines.set(lines)
    client = client_of(http, case["service"], **case["client"])
    begun, results = time.monotonic(), []
    for call in case["calls"]:
        result = await called(client, call)
        results.append({**result, "at": time.monotonic() - begun})
    await client.aclose()
    return results, lines


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    "http",
    [AsyncHttpxHttp, AsyncHttpx2Http, AiohttpHttp, HttpxHttp, Httpx2Http, RequestsHttp],
    ids=lambda http: http.__name__,
)
async def test_every_case_of_the_conformance_file_holds(http: Any) -> None:
    wrong: dict[str, list[str]] = {}
    async with conformance() as (_, cases):
        left = iter(list(cases.cases.values()))

        async def run() -> None:
            for case in left:
                results, lines = await played(http, case.public())
                if differences := case.differences(results, lines):
                    wrong[case.name] = differences

        await asyncio.gather(*(asyncio.create_task(run()) for _ in range(AT_ONCE)))
        assert {case.name for case in cases.cases.values() if case.played} == case_names()
    assert wrong == {}
