"""The crawls of clients/conformance.json, for any crawler that has the client in it."""

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.clients.conformance import FILE, Script, filled, received
from tests.origins import Exchange, head, serve

_OF_STATUS = {"HttpClientStatusCodeError", "HttpError"}
"""Errors of pages that came."""

_MEMBERS, _EXPECTED = {"name", "client", "pages", "page", "runs"}, {"fetched", "stops", "disallowed", "after"}

Options: TypeAlias = Mapping[str, Any]
"""The options of the client, by their names in Python."""


@dataclass
class Came:
    """What a crawler says of its run: its failed pages with the kinds and messages of their errors, and why it stopped,
    which is empty if it did not."""

    failed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    stopped: str = ""


Crawler: TypeAlias = Callable[[str, Options, list[str], Path], Awaitable[Came]]
"""Fetches pages: takes the URL of the service, the client's options, the pages, and a folder that its runs share."""


@dataclass(frozen=True)
class Naming:
    """What a crawler calls the settings for the key and the URL."""

    key: str = "`key`"
    url: str = "the URL"


def crawl_names() -> list[str]:
    """The names of all crawls."""
    return [crawl["name"] for crawl in json.loads(FILE.read_text())["crawls"]]


@asynccontextmanager
async def _serving(script: Script) -> AsyncIterator[str]:
    async def handle(exchange: Exchange) -> None:
        fields, body = await received(exchange)
        await script.play(exchange, exchange.path, fields, body)

    async with serve(handle) as origin:
        yield origin.url


async def differences(name: str, crawler: Crawler, folder: Path, naming: Naming, *, has_queue: bool) -> list[str]:
    """What differs from the crawl of that name, as sentences."""
    file = json.loads(FILE.read_text())
    [row] = [crawl for crawl in file["crawls"] if crawl["name"] == name]
    unknown = [row.keys() - _MEMBERS, *(run["expect"].keys() - _EXPECTED for run in row["runs"])]
    assert not set().union(*unknown), f"{name} has what no crawl knows: {unknown}"
    page, asked, wrong = row.get("page", {}), Counter[str](), list[str]()

    async def site(exchange: Exchange) -> None:
        asked[exchange.path] += 1
        sent = {"Content-Type": "text/html", "Content-Length": "1", "Connection": "close", **page.get("headers", {})}
        await exchange.send(head(page.get("status", 200), sent) + b"p")

    async with serve(site) as origin:
        pages = [f"{origin.url}/{number}" for number in range(row["pages"])]
        for run in row["runs"]:
            names = {**file["answers"], "site": origin.url, "key": naming.key, "url": naming.url}
            script, expect = Script(filled(run["exchanges"], names), set()), filled(run["expect"], names)
            before, begun = asked.total(), time.monotonic()
            async with _serving(script) as service:
                came = await crawler(service, {"unreachable": "wait", **row.get("client", {})}, pages, folder)
            wrong += script.differences()
            if asked.total() - before != expect["fetched"]:
                wrong.append(f"{asked.total() - before} pages were fetched: {asked}, {came}")
            if time.monotonic() - begun < expect.get("after", 0.0) - 0.01:
                wrong.append(f"it ended after {time.monotonic() - begun} s")
            wrong += _lacks(came, expect, pages, has_queue=has_queue)
            pages = [url for url in pages if asked[url.removeprefix(origin.url)] == 0]
    wrong += [f"{path} was fetched {times} times" for path, times in asked.items() if times > 1]
    return wrong


def _lacks(came: Came, expect: Mapping[str, Any], pages: list[str], *, has_queue: bool) -> Iterator[str]:
    kinds = Counter(kind for kind, _ in came.failed.values() if kind not in _OF_STATUS)
    if "stops" not in expect:
        if came.stopped or kinds != Counter({"Disallowed": expect["disallowed"]} if "disallowed" in expect else {}):
            yield f"not as expected: {came}"
        return
    if kinds != Counter({} if has_queue else {"Misconfigured": len(pages)}):
        yield f"failed: {came.failed}"
    messages = [came.stopped] if has_queue else [message for _, message in came.failed.values()]
    yield from (f"{part!r} is not in {text!r}" for part in expect["stops"] for text in messages if part not in text)
