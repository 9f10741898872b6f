"""`GET /v1/robots`: the file that is held."""

import pytest

from tests.api.service import running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

BODY = b"Host: h\nUser-agent: a\nCrawl-delay: 5\nUser-agent: b\nDissallow: /\xff\n<script>\nSitemap: http://h/s.xml\n"


async def test_the_held_file_is_told_whole(store_url: str) -> None:
    async with serve(text(200, BODY, {"Content-Type": "text/html"})) as origin, running(store_url) as service:
        response = await service.client.get("/v1/robots", params={"url": f"{origin.url}/any/page"})
        assert response.status_code == 200
        answer = response.json()
        assert (answer["robots"]["url"], answer["robots"]["status"]) == (f"{origin.url}/robots.txt", 200)
        assert answer["text"] == BODY.decode("utf-8", "replace")
        assert answer["groups"] == [
            {
                "agents": ["a", "b"],
                "line": 2,
                "rules": [{"directive": "disallow", "pattern": "/\ufffd", "line": 5}],
                "members": [{"key": "crawl-delay", "value": "5", "line": 3}],
            }
        ]
        assert answer["sitemaps"] == ["http://h/s.xml"]
        assert [extension["key"] for extension in answer["extensions"]] == ["host"]
        codes = {warning["code"] for warning in answer["warnings"]}
        assert {"not-text-plain", "typo-key", "non-utf8", "rate-between-agents", "deprecated"} <= codes


async def test_as_text_gives_the_bytes_and_lets_no_browser_run_them(store_url: str) -> None:
    async with serve(text(200, BODY, {"Content-Type": "text/html"})) as origin, running(store_url) as service:
        response = await service.client.get("/v1/robots", params={"url": origin.url, "as": "text"})
        assert response.content == BODY
        assert response.headers["content-type"].startswith("text/plain")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in response.headers["content-security-policy"]


@pytest.mark.parametrize(("status", "outcome"), [(404, "unavailable"), (503, "unreachable")])
async def test_where_there_is_no_file_the_facts_say_why(store_url: str, status: int, outcome: str) -> None:
    async with serve(text(status)) as origin, running(store_url) as service:
        answer = (await service.client.get("/v1/robots", params={"url": origin.url})).json()
        assert (answer["text"], answer["groups"], answer["robots"]["outcome"]) == (None, [], outcome)
        raw = await service.client.get("/v1/robots", params={"url": origin.url, "as": "text"})
        assert raw.status_code == 404
        assert outcome in raw.json()["detail"]


async def test_what_cannot_be_read_is_named(store_url: str) -> None:
    async with running(store_url) as service:
        bad_url = await service.client.get("/v1/robots", params={"url": "gopher://h/"})
        assert (bad_url.status_code, bad_url.json()["parameter"]) == (422, "url")
        bad_form = await service.client.get("/v1/robots", params={"url": "http://h/", "as": "pdf"})
        assert (bad_form.status_code, bad_form.json()["parameter"]) == (422, "as")
