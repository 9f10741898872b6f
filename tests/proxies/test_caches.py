"""A real HTTP cache in front of the service: nginx with proxy_cache."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.cli.serving import service
from tests.faults.until import until
from tests.operator_token import TOKEN_HEADER
from tests.origins import serve, text
from tests.proxies.proxy import running_nginx

pytestmark = pytest.mark.usefixtures("store_client")

# nginx is a shared cache, which stores nothing private: the inner server turns it into that of one caller.
CONFIGURATION = """
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/cache keys_zone=answers:1m;
    map $upstream_http_cache_control $own {{
        default $upstream_http_cache_control;
        "~^private, (max-age=.*)$" $1;
    }}
    server {{
        listen unix:{folder}/inner.sock;
        location / {{
            proxy_pass {service};
            proxy_hide_header Cache-Control;
            add_header Cache-Control $own always;
        }}
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://unix:{folder}/inner.sock:;
            proxy_cache answers;
            proxy_cache_revalidate on;
            add_header X-Cache $upstream_cache_status always;
        }}
    }}
}}
"""


@asynccontextmanager
async def cache(service: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that reaches the service through a cache, which says in X-Cache what it did."""

    def configuration(folder: str, port: int) -> str:
        return CONFIGURATION.format(folder=folder, port=port, service=service)

    async with (
        running_nginx(configuration) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client,
    ):
        yield client


async def requests(url: str) -> Counter[str]:
    """The requests that the service has answered about pages, by the class of their status."""
    async with httpx.AsyncClient() as direct:
        lines = (await direct.get(f"{url}/metrics")).text.splitlines()
    found: Counter[str] = Counter()
    for line in lines:
        if line.startswith("robots_requests_total{") and 'route="/v1/allowed"' in line:
            found[line.partition('status="')[2][:3]] += int(float(line.rpartition(" ")[2]))
    return found


async def test_an_answer_is_kept_and_asked_for_again_by_its_tag(store_url: str) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin:
        question = {"url": f"{origin.url}/page", "agent": "ExampleBot"}
        async with service(store_url, ANSWER_SECONDS="3600") as url, cache(url) as client:
            answers = [await client.get("/v1/allowed", params=question) for _ in range(20)]
            assert [answer.headers["x-cache"] for answer in answers] == ["MISS"] + 19 * ["HIT"]
            assert len({answer.content for answer in answers}) == 1
            assert await requests(url) == {"2xx": 1}
        async with service(store_url, ANSWER_SECONDS="1") as url, cache(url) as client:

            async def ask() -> httpx.Response:
                return await client.get("/v1/allowed", params=question)

            first = await ask()
            again = await until(ask, lambda answer: answer.headers["x-cache"] == "REVALIDATED")
            assert again.content == first.content
            found = await requests(url)
            assert found["2xx"] == 1
            assert found["3xx"] >= 1


async def test_a_deny_reaches_a_caller_that_caches(store_url: str) -> None:
    async with (
        serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin,
        service(store_url, ANSWER_SECONDS="1") as url,
        cache(url) as client,
    ):
        question = {"url": f"{origin.url}/page", "agent": "ExampleBot"}

        async def ask() -> str:
            answer = await client.get("/v1/allowed", params=question)
            return str(answer.json()["verdict"])

        assert await ask() == "allow"
        async with httpx.AsyncClient(headers=TOKEN_HEADER) as operator:
            deny = {"scope": origin.url, "action": "deny", "reason": "They asked us to stay away."}
            assert (await operator.put(f"{url}/v1/overrides/stop", json=deny)).is_success
            await until(ask, lambda verdict: verdict == "disallow")
            assert (await operator.delete(f"{url}/v1/overrides/stop")).is_success
        await until(ask, lambda verdict: verdict == "allow")
