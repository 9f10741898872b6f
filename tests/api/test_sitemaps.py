"""`POST /v1/robots/sitemaps`: what is read, by whose leave, and what an answer costs at most."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.api.sites import sitemap_walk
from app.api.sites.reader import AT_ONCE, PER_CALLER
from app.auth.keys import new_key
from tests.api.service import Service, running, slug
from tests.origins import Exchange, Gate, LoopbackOrigin, redirect, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FAST: dict[str, Any] = {"pace_floor": 0.0}
"""The service's clock stands still in tests, so slots with pauses would be ever farther away."""


def urlset(*urls: str) -> str:
    return f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>"


def index(*urls: str) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


@asynccontextmanager
async def site(files: Mapping[str, str | bytes], rules: str = "") -> AsyncIterator[LoopbackOrigin]:
    """A site whose robots.txt names the first of its files; `{}` in them is its URL. Bytes are whole responses."""

    async def reply(exchange: Exchange) -> None:
        path = exchange.path
        if path == "/robots.txt":
            named = "".join(f"Sitemap: {{}}{path}\n" for path in list(files)[:1])
            await exchange.send(text(200, f"User-agent: *\n{rules}\n{named}".replace("{}", origin.url)))
            return
        content = files.get(path, text(404))
        await exchange.send(content if isinstance(content, bytes) else text(200, content.replace("{}", origin.url)))

    async with serve(reply) as origin:
        yield origin


async def ask(service: Service, url: str) -> dict[str, Any]:
    response = await service.client.post("/v1/robots/sitemaps", params={"url": url})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def read(files: Mapping[str, str | bytes], store_url: str, rules: str = "") -> tuple[dict[str, Any], list[str]]:
    """The answer about a site with these files, in which `{}` is its URL, and the paths that were asked for."""
    async with site(files, rules) as origin, running(store_url, **FAST) as service:
        answer = await ask(service, f"{origin.url}/any")
        answer["urls"] = [url.removeprefix(origin.url) for url in answer["urls"]]
        for it in answer["sitemaps"]:
            it["url"] = it["url"].removeprefix(origin.url)
        return answer, [request.split()[1].decode() for request in origin.requests]


async def test_index_and_compressed_sitemaps_give_the_urls_of_the_site(store_url: str) -> None:
    packed = gzip.compress(urlset("http://x.example/b").encode())
    files: dict[str, str | bytes] = {
        "/index.xml": index("{}/a.xml", "{}/b.xml.gz", "{}/c.txt", "http://x.example/d.xml"),
        "/a.xml": urlset("{}/1", "{}/2", "http://x.example/3"),
        "/b.xml.gz": text(200, packed),
        "/c.txt": "{}/2\n{}/4\n",
    }
    answer, asked = await read(files, store_url)
    assert answer["urls"] == ["/1", "/2", "/4"]
    assert (answer["other_origins"], answer["unread"], answer["complete"]) == (3, 0, True)
    assert [(it["url"], it["outcome"], it["urls"], it["is_index"]) for it in answer["sitemaps"]] == [
        ("/index.xml", "read", 3, True),
        ("/a.xml", "read", 2, False),
        ("/b.xml.gz", "read", 0, False),
        ("/c.txt", "read", 2, False),
    ]
    assert asked == ["/robots.txt", "/index.xml", "/a.xml", "/b.xml.gz", "/c.txt"]


async def test_file_without_sitemaps_asks_for_nothing(store_url: str) -> None:
    answer, asked = await read({}, store_url)
    assert answer.pop("version")
    assert answer.pop("robots")["outcome"] == "successful"
    assert answer == {"urls": [], "sitemaps": [], "other_origins": 0, "unread": 0, "complete": True}
    assert asked == ["/robots.txt"]


async def test_file_that_cannot_be_fetched_leaves_the_answer_incomplete(store_url: str) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        answer = await ask(service, origin.url)
    assert (answer["urls"], answer["complete"], answer["version"]) == ([], False, None)
    assert (answer["robots"]["outcome"], answer["robots"]["status"]) == ("unreachable", 503)


async def test_robots_txt_decides_by_the_name_of_the_service(store_url: str) -> None:
    rules = "User-agent: RobotsDecisions\nDisallow: /hidden"
    files: dict[str, str | bytes] = {
        "/index.xml": index("{}/hidden.xml", "{}/moved.xml"),
        "/hidden.xml": urlset("{}/1"),
    }
    async with site(files, rules) as origin:
        files["/moved.xml"] = redirect(f"{origin.url}/hidden.xml")
        async with running(store_url, **FAST) as service:
            answer = await ask(service, origin.url)
    assert answer["urls"] == []
    detail = "It is closed to RobotsDecisions by line 3 of robots.txt."
    assert [(it["outcome"], it["detail"]) for it in answer["sitemaps"]] == [
        ("read", ""),
        ("disallowed", detail),
        ("disallowed", detail),
    ]
    assert b"/hidden.xml" not in b"".join(origin.requests)


async def test_pace_of_the_site_is_kept(store_url: str) -> None:
    async with site({"/a.xml": index("{}/b.xml")}, "Crawl-delay: 60") as origin, running(store_url) as service:
        answer = await ask(service, origin.url)
    assert [(it["outcome"], it["detail"]) for it in answer["sitemaps"]] == [
        ("read", ""),
        ("deferred", "The pace of 127.0.0.1 leaves no time for it now."),
    ]
    assert len(origin.requests) == 2


async def test_quota_pays_for_each_sitemap(store_url: str, tmp_path: Path) -> None:
    key, lines = new_key("a")
    keys = tmp_path / "keys.toml"
    keys.write_text(f"{lines}limit = {{requests = 100, seconds = 3600}}\n")
    keys.chmod(0o600)
    files: dict[str, str | bytes] = {"/index.xml": index("{}/a.xml", "{}/b.xml")}
    async with site(files) as origin, running(store_url, api_keys_file=keys, **FAST) as service:
        service.client.headers["Authorization"] = f"Bearer {key}"
        assert len((await ask(service, origin.url))["sitemaps"]) == 3
        response = await service.client.get("/v1/agents")
        assert "r=95;" in response.headers["RateLimit"]


async def test_sitemap_that_answers_503_makes_the_fleet_back_off(store_url: str) -> None:
    async with site({"/a.xml": text(503)}) as origin, running(store_url, **FAST) as service:
        first, second = await ask(service, origin.url), await ask(service, origin.url)
    assert [it["detail"] for it in first["sitemaps"]] == ["It answers 503."]
    assert [it["outcome"] for it in second["sitemaps"]] == ["deferred"]
    assert len(origin.requests) == 2


@pytest.mark.parametrize(
    ("location", "detail"),
    [
        ("http://10.0.0.1/a.xml", "It is at an address that is not on the public internet."),
        ("http://169.254.169.254/latest/meta-data", "It is at an address that is not on the public internet."),
        ("ftp://127.0.0.1/a.xml", "It redirects to no web page."),
        ("{}/loop.xml", "It redirects more than 5 times."),
    ],
)
async def test_redirect_leads_to_no_address_that_is_refused(location: str, detail: str, store_url: str) -> None:
    files: dict[str, str | bytes] = {"/loop.xml": b""}
    async with site(files) as origin:
        files["/loop.xml"] = redirect(location.replace("{}", origin.url))
        async with running(store_url, **FAST) as service:
            answer = await ask(service, origin.url)
    [found] = answer["sitemaps"]
    assert found["detail"] == detail
    assert found["outcome"] != "read"


async def test_port_that_no_web_server_has_is_not_asked(store_url: str) -> None:
    async with serve(text(200, urlset())) as other:
        rules = f"Sitemap: {other.url}/a.xml"
        async with site({}, rules) as origin, running(store_url, allow_ports=frozenset(), **FAST) as service:
            # By a setting, the robots.txt of the other port is fetched when it is asked about, and its sitemap is not.
            answer = await ask(service, origin.url)
    [found] = answer["sitemaps"]
    assert found["detail"] == f"It could not be fetched: port {other.port} is not permitted."
    assert [request.split()[1] for request in other.requests] == [b"/robots.txt"]


async def test_bomb_is_read_up_to_the_bound(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap_walk, "SITEMAP_BYTES", 100_000)
    bomb = gzip.compress(f"<urlset><url><loc>http://x.example/</loc></url>{' ' * 20_000_000}</urlset>".encode())
    files: dict[str, str | bytes] = {
        "/index.xml": index("{}/bomb.xml.gz", "{}/late.xml"),
        "/bomb.xml.gz": text(200, bomb),
        "/late.xml": urlset("{}/1"),
    }
    answer, asked = await read(files, store_url)
    assert (answer["urls"], answer["other_origins"], answer["unread"], answer["complete"]) == ([], 1, 1, False)
    assert asked == ["/robots.txt", "/index.xml", "/bomb.xml.gz"]


async def test_no_more_sitemaps_are_read_than_an_answer_may_cost(store_url: str) -> None:
    many = [f"{{}}/{number}.xml" for number in range(30)]
    files: dict[str, str | bytes] = {"/index.xml": index(*many)}
    files.update({url.removeprefix("{}"): index(*many, "{}/deep.xml") for url in many[:2]})
    files.update({url.removeprefix("{}"): urlset(f"{url}/page") for url in many[2:]})
    answer, asked = await read(files, store_url)
    assert len(asked) == 1 + sitemap_walk.SITEMAPS
    assert answer["unread"] == 31 - sitemap_walk.SITEMAPS
    assert answer["urls"] == [f"/{number}.xml/page" for number in range(2, 9)]
    assert {it["detail"] for it in answer["sitemaps"][1:3]} == {"It is an index that another index lists."}


async def test_server_that_never_ends_takes_the_time_of_one_fetch(store_url: str) -> None:
    async def drip(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\n\r\n<urlset>")
        while True:
            await exchange.send(b" ")
            await asyncio.sleep(0.01)

    async with (
        serve(drip) as slow,
        site({}, f"Sitemap: {slow.url}/a.xml") as origin,
        running(store_url, fetch_timeout=0.3, **FAST) as service,
    ):
        answer = await ask(service, origin.url)
    [found] = answer["sitemaps"]
    assert found["outcome"] == "deferred"  # its robots.txt drips, too
    assert found["detail"] == "The robots.txt of 127.0.0.1 could not be fetched."


async def test_no_more_sites_are_read_at_once_than_may_be(store_url: str) -> None:
    gate = Gate(text(200, urlset()))
    async with (
        serve(text(404), gate) as origin,
        serve(text(200, f"Sitemap: {origin.url}/a.xml")) as named,
        running(store_url, **FAST) as service,
    ):
        reads = [asyncio.create_task(ask(service, named.url)) for _ in range(PER_CALLER)]
        await origin.wait_for_requests(1 + PER_CALLER)
        response = await service.client.post("/v1/robots/sitemaps", params={"url": named.url})
        assert (response.status_code, slug(response)) == (503, "overloaded")
        gate.open.set()
        await asyncio.gather(*reads)
        await ask(service, named.url)
    assert PER_CALLER < AT_ONCE


async def test_page_of_another_site_cannot_ask(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.post(
            "/v1/robots/sitemaps", params={"url": "https://www.example.com"}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert response.status_code == 403
