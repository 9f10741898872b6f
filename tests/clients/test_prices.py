"""Each client hands the price of a 402 over, and the service repeats it."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import pytest
import requests
from robots_decisions import AsyncClient
from robots_decisions.aiohttp import PermitMiddleware
from robots_decisions.httpx import AsyncPermittedTransport
from robots_decisions.requests import PermitAdapter

from tests.clients.site import HTML, Site, new_address
from tests.origins import serve, text

AGENT = "ExampleBot"
FIELDS = {"User-Agent": AGENT}
PAGES = {"/page": [text(402, "", {"Crawler-Price": "USD 0.01", **HTML})]}


async def _by_httpx(service: str, url: str) -> None:
    async with httpx.AsyncClient(transport=AsyncPermittedTransport(service), headers=FIELDS) as client:
        await client.get(url)


async def _by_aiohttp(service: str, url: str) -> None:
    middleware = PermitMiddleware(service)
    async with aiohttp.ClientSession(middlewares=(middleware,), headers=FIELDS) as session:
        await session.get(url)
    await middleware.aclose()


async def _by_requests(service: str, url: str) -> None:
    def get() -> None:
        with requests.Session() as session:
            session.trust_env = False
            session.mount("http://", PermitAdapter(service))
            session.get(url, headers=FIELDS)

    await asyncio.to_thread(get)


async def _by_permit(service: str, url: str) -> None:
    async with AsyncClient(service, agent=AGENT) as client, client.permit(url) as permit:
        permit.report(402, price="USD 0.01")


@pytest.mark.parametrize("fetch", [_by_httpx, _by_aiohttp, _by_requests, _by_permit])
async def test_price_is_handed_over_with_its_page(service_url: str, fetch: Callable[[str, str], Any]) -> None:
    async with serve(Site("", PAGES), host=new_address()) as origin:
        await fetch(service_url, f"{origin.url}/page")
        async with AsyncClient(service_url, agent=AGENT) as client:
            edge = (await client.allowed(f"{origin.url}/other")).members["edge"]
    assert (edge["state"], edge["price"]["text"]) == ("priced", "USD 0.01")
    assert edge["price"]["url"] == f"{origin.url}/page"
