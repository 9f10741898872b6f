"""A crawl by one of the integrations, in its own process, which prints the result: `python integrations.py PLAN`.

PLAN is JSON: `integration`, `service` (its URL, or a list of them), and `urls`, which are fetched together; `options`
are other arguments of the integration. The result is what came of each URL: its status, or the name of the error. Of
several services it is a list of results, and each has URLs of its own, which end with its number. It imports nothing
of the tests.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import count
from typing import Any, TypeAlias

from robots_decisions import AsyncClient, Client, PermitError

AGENT = {"User-Agent": "ExampleBot/1.0"}

Service: TypeAlias = dict[str, Any]
"""Arguments of an integration: the URL of the service, and options."""


class Failed(str):
    """The name of an error."""

    message: str


def _failed(error: PermitError) -> Failed:
    failed = Failed(type(error).__name__)
    failed.message = str(error)
    return failed


async def _gathered(get: Callable[[str], Awaitable[int]], urls: list[str]) -> dict[str, int | str]:
    async def one(url: str) -> int | str:
        try:
            return await get(url)
        except PermitError as error:
            return _failed(error)

    return dict(zip(urls, await asyncio.gather(*map(one, urls)), strict=True))


def _in_threads(get: Callable[[str], int], urls: list[str]) -> dict[str, int | str]:
    def one(url: str) -> int | str:
        try:
            return get(url)
        except PermitError as error:
            return _failed(error)

    with ThreadPoolExecutor(len(urls)) as threads:
        return dict(zip(urls, threads.map(one, urls), strict=True))


async def _by_httpx(library: Any, transports: Any, service: Service, urls: list[str]) -> dict[str, int | str]:
    async with library.AsyncClient(transport=transports.AsyncPermittedTransport(**service), headers=AGENT) as client:

        async def get(url: str) -> int:
            status: int = (await client.get(url)).status_code
            return status

        return await _gathered(get, urls)


def _by_httpx_threads(library: Any, transports: Any, service: Service, urls: list[str]) -> dict[str, int | str]:
    with library.Client(transport=transports.PermittedTransport(**service), headers=AGENT) as client:
        return _in_threads(lambda url: client.get(url).status_code, urls)


async def _by_aiohttp(service: Service, urls: list[str]) -> dict[str, int | str]:
    import aiohttp
    from robots_decisions.aiohttp import PermitMiddleware

    async with (
        PermitMiddleware(**service) as permits,
        aiohttp.ClientSession(middlewares=[permits], headers=AGENT) as session,
    ):

        async def get(url: str) -> int:
            async with session.get(url) as response:
                return response.status

        return await _gathered(get, urls)


async def _by_crawlee(service: Service, urls: list[str]) -> dict[str, int | str]:
    from crawlee.crawlers import HttpCrawler
    from crawlee.storage_clients import MemoryStorageClient
    from robots_decisions.crawlee import PermitHooks

    came: dict[str, int | str] = {}
    async with PermitHooks(**service, agent=AGENT["User-Agent"]) as hooks:
        crawler = HttpCrawler(
            http_client=hooks.http_client(), storage_client=MemoryStorageClient(), configure_logging=False
        )
        hooks.install(crawler)

        @crawler.router.default_handler
        async def page(context: Any) -> None:
            came[context.request.url] = context.http_response.status_code

        @crawler.failed_request_handler
        async def failed(context: Any, error: Exception) -> None:
            came[context.request.url] = type(error).__name__

        await crawler.run(urls)
    if hooks.misconfigured is not None:
        return dict.fromkeys(urls, type(hooks.misconfigured).__name__)
    return came


def _by_requests(service: Service, urls: list[str]) -> dict[str, int | str]:
    import requests
    from robots_decisions.requests import PermitAdapter

    with requests.Session() as session:
        session.headers.update(AGENT)
        PermitAdapter(**service).mount(session)
        return _in_threads(lambda url: session.get(url).status_code, urls)


async def _by_client(service: Service, urls: list[str]) -> dict[str, int | str]:
    import httpx

    async with AsyncClient(**service, agent=AGENT["User-Agent"]) as client, httpx.AsyncClient() as pages:

        async def get(url: str) -> int:
            async with client.permit(url) as permit:
                response = await pages.get(url)
                permit.report(
                    response.status_code, response.headers.get("Retry-After"), response.headers.get("crawler-price")
                )
            return response.status_code

        return await _gathered(get, urls)


def _by_client_threads(service: Service, urls: list[str]) -> dict[str, int | str]:
    import httpx

    with Client(**service, agent=AGENT["User-Agent"]) as client, httpx.Client() as pages:

        def get(url: str) -> int:
            with client.permit(url) as permit:
                response = pages.get(url)
                permit.report(
                    response.status_code, response.headers.get("Retry-After"), response.headers.get("crawler-price")
                )
            return response.status_code

        return _in_threads(get, urls)


def crawl(integration: str, service: Service, urls: list[str]) -> dict[str, int | str]:
    """What came of each URL."""
    name = integration.removesuffix("-threads")
    match integration:
        case "httpx" | "httpx2":
            return asyncio.run(_by_httpx(*_modules(name), service, urls))
        case "httpx-threads" | "httpx2-threads":
            return _by_httpx_threads(*_modules(name), service, urls)
        case "aiohttp":
            return asyncio.run(_by_aiohttp(service, urls))
        case "requests":
            return _by_requests(service, urls)
        case "crawlee":
            return asyncio.run(_by_crawlee(service, urls))
        case "client":
            return asyncio.run(_by_client(service, urls))
        case "client-threads":
            return _by_client_threads(service, urls)
        case _:
            raise ValueError(f"unknown integration {integration!r}")


def _modules(library: str) -> tuple[Any, Any]:
    return import_module(library), import_module(f"robots_decisions.{library}")


def main() -> None:
    """Crawl, and print the result."""
    plan = json.loads(sys.argv[1])
    services = plan["service"]
    came = [
        crawl(
            plan["integration"],
            {"service": service, **plan.get("options", {})},
            [f"{url}{end}" for url in plan["urls"]],
        )
        for service, end in ([(services, "")] if isinstance(services, str) else zip(services, count(), strict=False))
    ]
    print(json.dumps(came[0] if isinstance(services, str) else {"results": came}))  # noqa: T201


if __name__ == "__main__":
    main()
