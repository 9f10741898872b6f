"""The service as the cases of clients/conformance.json script it, for the runner of any language.

`python -m tests.clients.conformance` prints its URL, and ends with its standard input.

| request | answer |
|---|---|
| `GET /cases` | all cases, those of sweeps included: `name`, `service` (the URL to ask), `client`, `calls`, `log` |
| `POST /cases/NAME` | what differs from the case, as sentences; the body is `{"results": [...], "log": [...]}` |
| anything below `/NAME` | the next exchange of that case |

A result is what a call gave, in the words of the file; a line of the log is a string. The names of the cases that were
compared are written to the file that CONFORMANCE_PLAYED of the environment names, each on a line.
"""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.origins import Exchange, head, serve

FILE = Path(__file__).parent.parent.parent / "clients" / "conformance.json"
_RANGE = re.compile(r"\{([0-9.]+)\.\.([0-9.]+)\}")
PLAYED = "CONFORMANCE_PLAYED"
PROCESS = "{process}"
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_VAGUE = re.compile(r": (?:it|its) ")
"""What an error must not call the service."""
_PAUSE = 0.01
"""Seconds by which a timer may be early."""


def filled(value: Any, names: Mapping[str, Any]) -> Any:
    """The value with each "{name}" replaced, in texts and as a whole; `with` adds members to what it stands beside."""
    if isinstance(value, str):
        if value[1:-1] in names and value == f"{{{value[1:-1]}}}":
            return names[value[1:-1]]
        return re.sub(r"\{([a-z_]+)\}", lambda found: str(names.get(found[1], found[0])), value)
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        members = {key: filled(item, names) for key, item in value.items()}
        if "like" in members:
            return {**filled(names[members.pop("like")], names), **members}
        return members
    return value


def _expanded(file: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The cases, and those that each sweep has for every failure, option and call that it names."""
    yield from file["cases"]
    for sweep in file["sweeps"]:
        failures = [failure for group in sweep["failures"] for failure in file["failures"][group]]
        options = [dict(zip(sweep["options"], values, strict=True)) for values in product(*sweep["options"].values())]
        for failure, chosen, called in product(failures, options, sweep["calls"]):
            call = file["calls"][called]
            names = {"failure": failure, "answered": call["answered"], "result": call["result"]}
            yield {
                "name": "-".join([sweep["name"], failure["name"], *chosen.values(), called]),
                "client": {**sweep.get("client", {}), **chosen},
                "exchanges": filled(sweep["exchanges"], names),
                "calls": [{**call["call"], "expect": filled(sweep["expect"], names)}],
                "stopped": failure.get("stopped", False),
            }


def _same(expected: Any, found: Any) -> bool:
    """Whether a member is as expected: "{1..2}" is a number in that range, "{process}" a name of a caller, and instants
    may be written differently."""
    if expected == PROCESS:
        return isinstance(found, str) and _NAME.fullmatch(found) is not None
    if isinstance(expected, str) and (bounds := _RANGE.fullmatch(expected)):
        return isinstance(found, int | float) and float(bounds[1]) <= found <= float(bounds[2])
    if isinstance(expected, str) and isinstance(found, str) and re.match(r"\d{4}-\d\d-\d\dT", expected):
        try:
            return datetime.fromisoformat(expected) == datetime.fromisoformat(found)
        except ValueError:
            return False
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(expected) == len(found)
            and all(_same(one, other) for one, other in zip(expected, found, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and expected.keys() == found.keys()
            and all(_same(value, found[key]) for key, value in expected.items())
        )
    return bool(expected == found) and isinstance(expected, bool) == isinstance(found, bool)


def _lacks(expected: Mapping[str, Any], result: Any) -> Iterator[str]:
    """What a result lacks of what is expected; `message` and `why` are texts that a sentence contains."""
    if not isinstance(result, dict):
        yield f"{result!r} is not an object"
        return
    for key, value in expected.items():
        found = result.get(key)
        if key in {"message", "why"}:
            yield from (f"{key} lacks {part!r}: {found!r}" for part in value if part not in str(found))
        elif key == "ends":
            if not str(result.get("message")).endswith(value):
                yield f"message does not end with {value!r}: {result}"
        elif key == "answers":
            if len(found or ()) != len(value):
                yield f"{len(found or ())} answers, not {len(value)}: {result}"
            for one, other in zip(value, found or (), strict=False):
                yield from _lacks(one, other)
        elif key == "members":
            kept = found or {}
            yield from (f"{name} is {kept.get(name)!r}" for name in value if not _same(value[name], kept.get(name)))
        elif key != "after" and not _same(value, found):
            yield f"{key} is {found!r}, not {value!r}: {result}"


def case_names() -> set[str]:
    """The names of all cases."""
    return {case["name"] for case in _expanded(json.loads(FILE.read_text()))}


class Script:
    """Requests and their answers, in their order, and what was asked in place of them, as sentences in `wrong`."""

    def __init__(self, exchanges: list[Any], processes: set[str]) -> None:
        self._exchanges = exchanges
        self._asked = 0
        self._processes = processes
        self._wrong: list[str] = []
        self.collected: list[Any] = []

    async def play(self, exchange: Exchange, path: str, fields: Mapping[str, str], body: bytes) -> None:
        """Compare a request with the script, and answer it."""
        if path == "/v1/permits/outcomes":
            items = json.loads(body)["items"]
            self.collected += items
            await answer(exchange, {"json": {"outcomes": [{"released": False, "backoff": None}] * len(items)}})
            return
        if not self._exchanges:
            self._wrong.append(f"an unexpected request: {exchange.head!r}")
            return
        last = self._asked >= len(self._exchanges)
        step = self._exchanges[min(self._asked, len(self._exchanges) - 1)]
        self._asked += 1
        if last and not step.get("answer", {}).get("repeat"):
            self._wrong.append(f"one more request: {path} {body[:200]!r}")
        asks = step.get("asks", {})
        self._wrong += request_lacks(asks, exchange.head.split(b" ", 1)[0].decode(), path, fields, body)
        if {**asks, **asks.get("members", {}), **asks.get("has", {})}.get("caller") == PROCESS:
            self._processes.add(json.loads(body).get("caller"))
        await answer(exchange, step.get("answer", {}))

    def differences(self) -> list[str]:
        """What differs from the script."""
        missing = [step for step in self._exchanges[self._asked :] if not step.get("answer", {}).get("repeat")]
        wrong = list(self._wrong)
        if missing:
            wrong.append(f"{self._asked} requests: {missing} are missing")
        if len(self._processes) > 1:
            wrong.append(f"one process has several names: {self._processes}")
        return wrong


class Case:
    """One case, and what has been asked of it."""

    def __init__(
        self, case: Mapping[str, Any], answers: Mapping[str, Any], url: str, stopped: str, processes: set[str]
    ) -> None:
        self.name: str = case["name"]
        self.service = f"{stopped if case.get('stopped') else url}/{self.name}"
        names = {**answers, "site": f"{self.name}.example", "service": self.service}
        self._case = filled(case, names)
        self.script = Script(self._case.get("exchanges", []), processes)
        self.played = False

    @property
    def expected(self) -> Mapping[str, Any]:
        """What the first call gives."""
        expect: Mapping[str, Any] = self._case["calls"][0]["expect"]
        return expect

    def public(self) -> dict[str, Any]:
        """What a runner has to do."""
        client = {"agent": "ExampleBot", **self._case.get("client", {})}
        calls = [{key: value for key, value in call.items() if key != "expect"} for call in self._case["calls"]]
        return {"name": self.name, "service": self.service, "client": client, "calls": calls}

    def differences(self, results: list[Any], log: list[str]) -> list[str]:
        """What differs from the case."""
        self.played = True
        wrong = self.script.differences()
        if "collected" in self._case and not _same(self._case["collected"], self.script.collected):
            wrong.append(f"collected outcomes: {self.script.collected}")
        calls = self._case["calls"]
        if len(results) != len(calls):
            wrong.append(f"{len(results)} results, not {len(calls)}")
        for call, result in zip(calls, results, strict=False):
            wrong += _lacks(call["expect"], result)
            if not isinstance(result, dict):
                continue
            if "error" in result and "error" not in call["expect"]:
                wrong.append(f"an error: {result}")
            wrong += self._unclear(result)
            if result.get("at", 0.0) < call["expect"].get("after", 0.0) - _PAUSE:
                wrong.append(f"{call} ended after {result.get('at')} s")
        for line in self._case.get("log", []):
            times = sum(all(part in one for part in line["has"]) for one in log)
            if times != line["times"]:
                wrong.append(f"{times} lines of the log have {line['has']}: {log}")
        return wrong

    def _unclear(self, result: Mapping[str, Any]) -> Iterator[str]:
        """Every error names the service, and never calls it "it"."""
        message = result.get("message", "")
        if "error" in result and (self.service not in message or _VAGUE.search(message)):
            yield f"the message does not name the service: {message!r}"


def request_lacks(
    asks: Mapping[str, Any], method: str, path: str, fields: Mapping[str, str], body: bytes
) -> Iterator[str]:
    """What a request lacks of what is expected."""
    parts = urlsplit(path)
    if asks.get("method", method) != method or asks.get("path", parts.path) != parts.path:
        yield f"{method} {parts.path}, not {asks}"
    if "query" in asks:
        expected = {key: value if isinstance(value, list) else [value] for key, value in asks["query"].items()}
        if not _same(expected, parse_qs(parts.query, keep_blank_values=True)):
            yield f"the query is {parts.query!r}, not {expected}"
    for name, value in asks.get("headers", {}).items():
        if fields.get(name) != value:
            yield f"{name} is {fields.get(name)!r}, not {value!r}"
    if "members" in asks and not _same(asks["members"], json.loads(body)):
        yield f"the members are {body!r}, not {asks['members']}"
    if "has" in asks:
        members = json.loads(body)
        yield from (
            f"{name} is {members.get(name)!r}"
            for name, value in asks["has"].items()
            if not _same(value, members.get(name))
        )
    if "lines" in asks:
        lines = [json.loads(line) for line in body.splitlines()]
        if not _same(asks["lines"], lines):
            yield f"the lines are {lines}, not {asks['lines']}"


async def received(exchange: Exchange) -> tuple[dict[str, str], bytes]:
    """The header fields of a request, by lower-case name, and its body."""
    lines = exchange.head.decode("latin-1").split("\r\n")[1:]
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    return fields, await exchange.receive(int(fields.get("content-length", 0)))


async def answer(exchange: Exchange, said: Mapping[str, Any]) -> None:
    """Answer a request as the file says."""
    fault = said.get("fault")
    if fault == "reset":
        exchange.reset()
        return
    if fault in {"closed", "garbage"}:
        await exchange.send(b"220 mail.example ESMTP\r\n\r\n" if fault == "garbage" else b"")
        return
    if fault == "silence":
        await exchange.stall()
        return
    content = _content(said)
    fields = {"Content-Length": str(len(content) + (100 if fault else 0)), "Connection": "close"}
    sent = {"Content-Type": "application/json", **fields, **said.get("headers", {})}
    await exchange.send(head(said.get("status", 200), sent) + content)
    if fault == "slow":
        await exchange.stall()


def _content(answer: Mapping[str, Any]) -> bytes:
    if "json" in answer:
        return json.dumps(_dated(answer["json"])).encode()
    if "lines" in answer:
        return "".join(f"{json.dumps(_dated(line))}\n" for line in answer["lines"]).encode()
    text, times = str(answer.get("text", "")), int(answer.get("times", 1))
    return (text * times).encode()


def _dated(message: Any) -> Any:
    """The message, with `retry_at` as many seconds from now as its `retry_in` says."""
    if not isinstance(message, dict) or message.get("retry_in") is None:
        return message
    at = datetime.now(UTC) + timedelta(seconds=message["retry_in"])
    return {**message, "retry_at": at.isoformat()}


class Conformance:
    """All cases, played at a URL; nothing listens at `stopped`."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}

    def load(self, url: str, stopped: str) -> None:
        """Read the file."""
        file = json.loads(FILE.read_text())
        processes: set[str] = set()
        cases = [Case(case, file["answers"], url, stopped, processes) for case in _expanded(file)]
        self.cases = {case.name: case for case in cases}
        if len(self.cases) < len(cases):
            raise ValueError("two cases have one name")

    async def __call__(self, exchange: Exchange) -> None:
        """Answer a request."""
        fields, body = await received(exchange)
        _, name, *rest = exchange.path.split("/", 2)
        if name != "cases":
            await self.cases[name].script.play(exchange, f"/{rest[0]}", fields, body)
            return
        said: Any = [case.public() for case in self.cases.values()]
        if rest:
            given = json.loads(body)
            said = self.cases[rest[0]].differences(given["results"], given["log"])
            _note(rest[0])
        await answer(exchange, {"json": said})


def _note(name: str) -> None:
    """Note that a case was compared, for the test that started the runner."""
    if PLAYED in os.environ:
        with Path(os.environ[PLAYED]).open("a") as played:
            played.write(f"{name}\n")


@asynccontextmanager
async def conformance() -> AsyncIterator[tuple[str, Conformance]]:
    """The URL, and the cases."""
    cases = Conformance()
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))  # and does not listen
        async with serve(cases) as origin:
            cases.load(origin.url, f"http://127.0.0.1:{refusing.getsockname()[1]}")
            yield origin.url, cases


async def _run() -> None:
    async with conformance() as (url, _):
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_run())
