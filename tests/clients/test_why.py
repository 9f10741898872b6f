"""`robots-decisions why`: the explanation of an answer of a running service."""

import asyncio
import json
import os
import pty
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from robots_decisions.cli.explanation import _SOURCES, explanation

from app.cache.result import Source
from tests.cli.serving import service
from tests.clients.commands import WORDS, run
from tests.clients.crawling import environment
from tests.clients.site import Site, new_address
from tests.origins import Exchange, http_only, redirect, serve, text

ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/open\nCrawl-delay: 5\n"


async def test_explanation_names_the_file_the_group_and_the_rules(service_url: str) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        ended = await run("why", f"{origin.url}/private/open/a", "FooBot", "--server", service_url)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "allow (rule): Line 3 (Allow: /private/open) in the group for * allows this URL."
    assert f"file      {origin.url}/robots.txt: successful, 200" in lines
    assert "group     no group names foobot, so the one for * applies (line 1)" in lines
    at = lines.index("rules     2 matched /private/open/a; the longest decides; allow wins a tie")
    assert lines[at + 1 : at + 3] == [
        "          decides: line 3: allow: /private/open (13 bytes)",
        "          and line 2: disallow: /private (8 bytes)",
    ]
    assert "rate      one document every 5 s (crawl-delay, line 4)" in lines


async def test_unreachable_file_shows_the_next_attempt(service_url: str) -> None:
    async with serve(text(503), host=new_address()) as origin:
        ended = await run("why", f"{origin.url}/", "FooBot", "--server", service_url)
    assert ended.code == 2
    assert ended.out.startswith("defer (unreachable): robots.txt could not be fetched: the server answered 503 at ")
    assert "; no copy from the last 30 days is cached; ask again at " in ended.out.splitlines()[0]
    assert "unreachable, 503, server_error" in ended.out
    assert "fetches have failed since " in ended.out


async def test_explanation_includes_redirects_and_fallback_agents(service_url: str) -> None:
    robots = "User-agent: other\nDisallow: /\n"
    async with (
        serve(text(200, robots), host=new_address()) as target,
        serve(redirect(f"{target.url}/robots.txt"), host=new_address()) as origin,
    ):
        ended = await run("why", f"{origin.url}/a", "FooBot", "other", "--server", service_url)
    assert ended.code == 1, ended.err
    assert f"          redirected to {target.url}/robots.txt" in ended.out
    assert "no group names foobot, and other comes next and has one" in ended.out


async def test_options_are_parts_of_the_question(service_url: str) -> None:
    robots = "User-agent: *\nContent-Signal: ai-train=no\nAllow: /a\nDisallow: /\nRequest-rate: 1/20 0800-1200\n"
    options = ("--at", "2026-11-21T12:00:00Z", "--dialect", "draft1996", "--purpose", "ai-train")
    async with serve(Site(robots), host=new_address()) as origin:
        ended = await run("why", f"{origin.url}/a", "Mozilla/5.0 (X11)", *options, "--server", service_url)
        strict = await run("why", f"{origin.url}/a", "FooBot", *options, "--enforce", "--server", service_url)
    assert (ended.code, strict.code) == (0, 1)
    assert "The site refuses ai-train" in strict.out
    lines = ended.out.splitlines()
    assert "agent     Mozilla, read by the dialect draft1996" in lines
    assert "rules     2 matched /a; the first in the file decides" in lines
    assert "rate      no limit, until 2026-11-22T08:00:00Z, then one document every 20 s" in lines
    assert "usage     ai-train=no" in lines
    assert "purpose   ai-train: no (line 2)" in lines
    assert any(line.startswith("note      agent-unnamed: ") for line in lines)


async def test_verdicts_of_earlier_versions_are_shown(service_url: str) -> None:
    async with serve(Site("User-agent: *\nDisallow: /\n"), host=new_address()) as origin:
        asked = ("why", f"{origin.url}/a", "FooBot", "--server", service_url)
        first = await run(*asked)
        answer = json.loads((await run(*asked, "--json")).out)
    assert first.code == 1, first.err
    assert "disallow (rule, line 2: disallow: /), by version " in first.out
    assert answer["verdict"] == "disallow"
    assert [version["verdict"] for version in answer["before"]] == ["disallow"]
    assert answer["explanation"]["matched"] == 1


async def test_answer_is_explained_without_a_store_for_its_history(service_url: str) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin, AsyncClient(base_url=service_url) as client:
        asked = {"url": f"{origin.url}/private", "agent": "A", "explain": "true"}
        answer = (await client.get("/v1/allowed", params=asked)).text

    async def without_a_store(exchange: Exchange) -> None:
        is_history = exchange.path.startswith("/v1/robots/history")
        status, body = (503, '{"detail": "The store is unavailable."}') if is_history else (200, answer)
        await exchange.send(text(status, body, {"Connection": "close"}))

    async with serve(without_a_store) as service_without:
        ended = await run("why", f"{origin.url}/private", "A", "--server", service_without.url)
    assert (ended.code, ended.out.splitlines()[0]) == (1, _first_line(answer))
    problem = f"{service_without.url} answers 503: The store is unavailable."
    assert ended.err == f"Earlier versions are not shown: {problem}\n"


def _first_line(answer: str) -> str:
    return f"disallow (rule): {json.loads(answer)['explanation']['summary']}"


async def closed_to_acme(exchange: Exchange) -> None:
    await exchange.send(text(200, "Usr-agent: *\nDisallow: /" if b"AcmeBot/2.0" in exchange.head else ROBOTS))


async def test_earlier_versions_are_those_of_the_fetch_profile(
    store_url: str, store_client: object, tmp_path: Path
) -> None:
    file = tmp_path / "agents.toml"
    file.write_text('[agents.AcmeBot]\nprofile = "acme"\n[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n')
    async with serve(closed_to_acme) as origin, service(store_url, AGENTS_FILE=str(file)) as url:
        await run("why", f"{origin.url}/a", "ExampleBot", "--server", url)
        ended = await run("why", f"{origin.url}/a", "AcmeBot", "--server", url, "--json")
    [version] = json.loads(ended.out)["before"]
    assert version["size"] == len("Usr-agent: *\nDisallow: /")


async def test_bare_host_falls_back_to_http(service_url: str) -> None:
    async with serve(at_once=http_only(text(200, ROBOTS)), host=new_address()) as origin:
        bare = origin.url.removeprefix("http://")
        ended = await run("why", f"{bare}/private/", "ExampleBot", "--server", service_url)
    assert ended.code == 1
    assert f"URL       {origin.url}/private/\n" in ended.out


async def test_bare_host_is_asked_by_https_if_neither_can_be_reached(service_url: str) -> None:
    async with serve(text(200), host=new_address()) as origin:
        bare = origin.url.removeprefix("http://")
    ended = await run("why", bare, "ExampleBot", "--server", service_url)
    assert ended.code == 2
    assert f"URL       https://{bare}/\n" in ended.out


async def test_file_text_cannot_control_the_terminal(service_url: str) -> None:
    robots = "User-agent: *\nDisallow: /[2J\u202e/\n"
    async with serve(Site(robots), host=new_address()) as origin:
        ended = await run("why", f"{origin.url}/[2J%E2%80%AE/", "A", "--server", service_url)
    assert ended.code == 1
    assert "\u202e" not in ended.out
    assert r"/[2J\u202e/" in ended.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the following arguments are required"),
        (("http://h/",), "the following arguments are required"),
        (("gopher://h/", "A"), "answers 422: 'gopher://h/' has the scheme 'gopher'; use http or https."),
        (("http://h/", "()"), "answers 422: "),
        (("http://h/", "A", "--server", "nowhere"), "Invalid service URL 'nowhere'"),
        (("http://h/", "A", "--server", "http://127.0.0.1:1"), "http://127.0.0.1:1 cannot be reached: "),
    ],
)
async def test_what_cannot_be_asked_is_an_error(service_url: str, arguments: tuple[str, ...], said: str) -> None:
    server = () if "--server" in arguments else ("--server", service_url)
    ended = await run("why", *arguments, *server)
    assert (ended.code, ended.out) == (3, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (text(200, "<html>"), "answers 200 with an unexpected body; is it this service?"),
        (text(200, "[]"), "answers 200 with an unexpected body; is it this service?"),
        (text(200, '{"verdict": "perhaps", "robots": {}}'), "answers with the verdict 'perhaps'"),
        (text(404, "{}"), "answers 404 with an unexpected body; is it this service?"),
        (b"220 ready\r\n\r\n", "Set --server to the URL of a robots.txt decision service"),
        (text(401, '{"detail": "Send a key\u202e"}'), "answers 401: Send a key?"),
    ],
)
async def test_answers_of_another_server_are_errors(reply: bytes, said: str) -> None:
    async with serve(reply) as other:
        ended = await run("why", "http://h/", "A", "--server", other.url)
    assert (ended.code, ended.out) == (3, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


async def _on_a_terminal(*arguments: str, **settings: str) -> str:
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *WORDS, *arguments, env=environment(**{"NO_COLOR": "", "TERM": "xterm", **settings}), stdout=theirs
    )
    await process.wait()
    os.close(theirs)
    output = os.read(ours, 10_000).decode()
    os.close(ours)
    return output


async def test_verdicts_have_colours_on_a_terminal_only(service_url: str) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        asked = ("why", f"{origin.url}/private", "A", "--server", service_url)
        assert (await _on_a_terminal(*asked)).startswith("\x1b[31mdisallow\x1b[0m (rule): ")
        assert (await _on_a_terminal(*asked, NO_COLOR="1")).startswith("disallow (rule): ")
        assert (await _on_a_terminal(*asked, TERM="dumb")).startswith("disallow (rule): ")
        assert (await run(*asked)).out.startswith("disallow (rule): ")


def test_every_source_of_a_file_of_now_has_a_text() -> None:
    assert set(_SOURCES) == set(Source) - {Source.HISTORY, Source.NONE}


def test_facts_that_only_a_service_has_are_shown() -> None:
    override = {"id": "slow", "action": "delay", "scope": "h", "reason": "x", "expires_at": None, "shadow": True}
    edge = {"state": "refused", "status": 403, "since": "S", "reported_at": "R", "count": 2}
    robots = {"outcome": None, "url": "http://h/robots.txt"}
    answer: dict[str, Any] = {
        "url": "http://h/",
        "agent": "A",
        "dialect": "rfc9309",
        "verdict": "defer",
        "reason": "pending",
        "explanation": {"summary": "Why."},
        "rate": None,
        "visit": None,
        "usage": None,
        "robots": robots,
        "override": override,
        "edge": edge,
    }
    assert list(explanation(answer, ()))[4:] == [
        "file      http://h/robots.txt has not been fetched yet",
        "override  slow would apply, but is in shadow mode: delay for h",
        "          because x",
        "edge      pages refused since S: 2, last 403",
    ]
