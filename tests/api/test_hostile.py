"""Callers who mean no good, on every route: a clear 4xx or a right answer, never a 500, never a wait without an end.

What size can do to a connection is in test_connection.py; what a description lets one ask, in test_schema.py.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from starlette.types import ASGIApp

from app.api.middleware.body_limit import REQUEST_BODY_LIMIT
from app.api.problem_types import PROBLEMS
from robots_core.origin import URL_LIMIT, read_target
from tests.api.asgi_client import Answer, request
from tests.api.document import DOCUMENT
from tests.api.service import Service, running
from tests.origins import LoopbackOrigin, serve, text

RULES = text(200, "User-agent: *\nDisallow: /private/\nDisallow: //double\nDisallow: /a/../b\nDisallow: /back\\slash\n")


def judge(answer: Answer) -> None:
    """The response is an answer, or a problem that says why not."""
    assert 200 <= answer.status < 500 or answer.status == 503, answer
    kind = answer.headers.get(b"content-type", b"").partition(b";")[0]
    if answer.status >= 400:
        assert kind == b"application/problem+json"
        problem = answer.json
        assert problem["status"] == answer.status
        assert problem["type"] in {one.urn for one in PROBLEMS.values()}
        assert problem["detail"]
        assert len(answer.body) < 10_000
    elif kind == b"application/json":
        assert answer.json is not None


TRAPS = [
    "http://h/" + "a" * URL_LIMIT,
    "http://" + "a" * 300 + "/",
    "http://" + "ü" * 10_000 + "/",
    "http://h/\x00\x01\x1f\x7f",
    "http://h\x00.test/",
    "http://a.test\r\nHost: b.test/",
    "http://a.test/\ud800",
    "http://a.test\\@b.test/",
    "http://a:b@a.test/",
    "http://a.test:99999/",
    "http://a.test:٣/",
    "http://[::1%25eth0]/",
    "http://[::ffff:169.254.169.254]/",
    "http://0x7f000001/",
    "http://169.254.169.254/latest/meta-data",
    "https://а.test/",
    "http://a.test//../..//./private/",
    "http://a.test/?" + "&" * 10_000,
    "//a.test/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "",
    " ",
    "\ufeff",
    "*",
    "(" * 1000,
    "Bot" * 50_000,
    "<script>alert(1)</script>",
    "${jndi:ldap://a.test/x}",
    "robots:{x}",
    "9" * 5000,
    "1e999",
    "-0",
    "NaN",
    "null",
    "9999-12-31T23:59:59Z",
    "2026-02-30T00:00:00Z",
    "2026-11-21T18:30:00+99:99",
    "0" * 64,
    "%",
    "%zz",
]
# By index: hypothesis would print failing examples in full, which are too long to read.
texts = st.integers(0, len(TRAPS) - 1).map(TRAPS.__getitem__) | st.text(max_size=40)
scalars = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.sampled_from([10**4000, -1, 0, 2**63, 1e308]),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
RAW = [
    b"",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b"null",
    b"NaN",
    b"9" * 100_000,
    b'"\\ud800"',
    b'{"url": 1, "url": 2}',
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b"{}" + b" " * 100_000,
    b"{}{}",
    b'{"items": [' + b"0," * 10_000 + b"0]}",
    b'{"urls": ["http://a.test/"], "agents": ["a"], "robots": "' + b"\\u0000" * 100_000 + b'"}',
    b"a=b&c=d",
    b"\x80\x04\x95",
]
KINDS = [
    b"application/json",
    b"application/x-ndjson",
    b"text/plain",
    b"application/x-www-form-urlencoded",
    b"a" * 5000,
    b"",
]
HEADERS = [
    b"x-request-id",
    b"authorization",
    b"x-api-key",
    b"content-length",
    b"origin",
    b"accept",
    b"traceparent",
    b"via",
]


class Route(NamedTuple):
    """An operation, and its parameter and member names."""

    method: str
    path: str
    parameters: list[str]
    members: list[str]


def routes(document: Mapping[str, Any]) -> list[Route]:
    """Every operation of the OpenAPI document."""
    schemas = document["components"]["schemas"]
    members = sorted({name for schema in schemas.values() for name in schema.get("properties", {})})
    return [
        Route(method.upper(), path, [one["name"] for one in operation.get("parameters", ())], members)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def escaped(value: str) -> bytes:
    return quote_from_bytes(value.encode("utf-8", "surrogatepass"), safe="").encode()


def scrubbed(value: str) -> str:
    """A path as a server passes it on: bytes that are not UTF-8 are replaced."""
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


queries = st.tuples(texts.map(escaped) | st.binary(max_size=20), st.integers(1, 3))
bodies = st.integers(0, len(RAW) - 1).map(RAW.__getitem__) | st.binary(max_size=200)
odd = st.binary(max_size=30) | st.sampled_from([b"Bearer", b"Bearer \xff", b"9" * 5000, b"-1", b"null", b"\r\n"])
odd_headers = st.lists(st.tuples(st.sampled_from(HEADERS), odd), max_size=4)

many = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


@contextmanager
def serving(store_url: str) -> Iterator[tuple[asyncio.Runner, ASGIApp, list[Route]]]:
    """The application, for many examples on one event loop."""

    @asynccontextmanager
    async def parts() -> Any:
        async with serve(RULES) as origin, running(store_url, {"a.test": ["127.0.0.1"]}, fetch_timeout=1.0) as service:
            yield origin, service

    with asyncio.Runner() as runner:
        context = parts()
        _, service = runner.run(context.__aenter__())
        try:
            yield runner, service.app, routes(DOCUMENT)
        finally:
            runner.run(context.__aexit__(None, None, None))


def test_no_route_fails_whatever_the_parameters(store_url: str) -> None:
    with serving(store_url) as (runner, app, known):

        @many
        @given(st.sampled_from(known), st.data())
        def check(route: Route, data: st.DataObject) -> None:
            names = st.sampled_from([*route.parameters, "url", "agent", "wait", "nobody"])
            pairs = data.draw(st.lists(st.tuples(names, queries), max_size=6), label="query")
            query = b"&".join(name.encode() + b"=" + value for name, (value, times) in pairs for _ in range(times))
            path = re.sub("{[a-z]+}", lambda _: data.draw(texts.map(scrubbed), label="in the path"), route.path)
            document = st.dictionaries(st.sampled_from(route.members), values, max_size=8)
            body = data.draw(bodies | document.map(lambda it: json.dumps(it).encode()), label="body")
            kind = data.draw(st.sampled_from(KINDS), label="kind")
            headers = [(b"content-type", kind), *data.draw(odd_headers, label="headers")]
            judge(runner.run(request(app, route.method, path, query, body, headers)))

        check()


def test_no_question_fails_or_is_misread(store_url: str) -> None:
    with serving(store_url) as (runner, app, _):

        @many
        @given(texts, texts | st.just("ExampleBot"), st.dictionaries(st.sampled_from(["at", "wait", "dialect"]), texts))
        def check(url: str, agent: str, more: dict[str, str]) -> None:
            pairs = {"url": url, "agent": agent, **more}
            query = b"&".join(name.encode() + b"=" + escaped(value) for name, value in pairs.items())
            answer = runner.run(request(app, "GET", "/v1/allowed", query))
            judge(answer)
            if answer.status == 200:
                answered = answer.json
                assert answered["allowed"] is (answered["verdict"] == "allow")
                assert read_target(answered["url"]).url == answered["url"]
            # In a batch and in a stream, the question has the same answer, or fails alone.
            item = json.dumps(pairs).encode()
            batch = runner.run(request(app, "POST", "/v1/allowed", body=b'{"items":[' + item + b"]}"))
            judge(batch)
            assert batch.status == 200
            lines = [(b"content-type", b"application/x-ndjson")]
            line = runner.run(request(app, "POST", "/v1/allowed", body=item, headers=lines))
            judge(line)
            assert len(line.body.splitlines()) == 1

        check()


def test_no_pasted_file_makes_the_service_fail(store_url: str) -> None:
    lines = st.sampled_from(["user-agent", "disallow", "allow", "crawl-delay", "request-rate", "sitemap", "noindex"])
    files = st.lists(st.tuples(lines, texts).map(": ".join), max_size=10).map("\n".join)
    some = st.lists(texts, min_size=1, max_size=3)
    with serving(store_url) as (runner, app, _):

        @many
        @given(files | values, some | values, some | values, values | st.just([]), values)
        def check(robots: Any, urls: Any, agents: Any, dialects: Any, at: Any) -> None:
            body = {"robots": robots, "urls": urls, "agents": agents, "dialects": dialects, "at": at}
            judge(runner.run(request(app, "POST", "/v1/test", body=json.dumps(body).encode())))

        check()


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/private/page", "disallow"),
        ("/open/../private/page", "allow"),  # as written: the crawler requests the URL as it is
        ("/a/../b", "disallow"),
        ("//double", "disallow"),
        ("/private//", "disallow"),
        ("/%70rivate/page", "disallow"),
        ("/private%2Fpage", "allow"),
        ("/back\\slash", "disallow"),
        ("/private/\x00\x1f", "disallow"),
        ("/private/" + "a" * 16_000, "disallow"),
        ("/private/#/open", "disallow"),
        ("/open#/private/", "allow"),
        ("/open?/private/", "allow"),
        ("/robots.txt", "allow"),
    ],
)
async def test_odd_path_is_matched_as_written(store_url: str, store_client: Redis, path: str, verdict: str) -> None:
    async with serve(RULES) as origin, running(store_url) as service:
        assert (await service.allowed(origin.url + path))["verdict"] == verdict


async def test_user_info_is_neither_sent_nor_shown(store_url: str, store_client: Redis) -> None:
    async with serve(RULES) as origin, running(store_url) as service:
        url = f"http://user:secret@{origin.address}:{origin.port}/private/"
        answer = await service.client.get("/v1/allowed", params={"url": url, "agent": "a"})
        assert answer.json()["verdict"] == "disallow"
        assert "secret" not in answer.text
        assert b"uthorization" not in origin.requests[0]


@pytest.mark.parametrize("size", [URL_LIMIT, URL_LIMIT + 1])
async def test_url_may_have_16_kib(store_url: str, store_client: Redis, size: int) -> None:
    async with serve(RULES) as origin, running(store_url) as service:
        url = f"{origin.url}/private/".ljust(size, "a")
        response = await service.client.get("/v1/allowed", params={"url": url, "agent": "a"})
        assert response.status_code == (200 if size == URL_LIMIT else 422)


async def lines(service: Service, origin: LoopbackOrigin, count: int) -> bytes:
    item = json.dumps({"url": f"{origin.url}/private/", "agent": "a"}).encode()
    kind = [(b"content-type", b"application/x-ndjson")]
    return (await request(service.app, "POST", "/v1/allowed", body=(item + b"\n") * count, headers=kind)).body


async def test_ten_thousand_questions_fit_a_stream_but_not_a_batch(store_url: str, store_client: Redis) -> None:
    async with serve(RULES) as origin, running(store_url) as service:
        items = [{"url": f"{origin.url}/private/", "agent": "a"}] * 10_000
        batch = await request(service.app, "POST", "/v1/allowed", body=json.dumps({"items": items}).encode())
        assert (batch.status, batch.json["type"]) == (413, PROBLEMS["too-large"].urn)
        answers = (await lines(service, origin, 10_000)).splitlines()
        assert len(answers) == 10_000
        assert all(b'"verdict":"disallow"' in line for line in answers)
        assert len(origin.requests) == 1


async def test_body_at_the_limit_is_read_and_a_larger_one_refused(store_url: str, store_client: Redis) -> None:
    body = json.dumps({"robots": "", "urls": ["http://h/"], "agents": ["a"]}).encode()
    async with running(store_url) as service:
        for size, status in ((REQUEST_BODY_LIMIT, 200), (REQUEST_BODY_LIMIT + 1, 413)):
            answer = await request(service.app, "POST", "/v1/test", body=body.ljust(size))
            judge(answer)
            assert answer.status == status
