"""`python -m app why`: the explanation of a decision."""

import json

import pytest

from app.cache.result import Source
from app.cli.why import _SOURCES
from tests.cli.command import run
from tests.cli.serving import service
from tests.origins import redirect, serve, text

ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/open\nCrawl-delay: 5\n"


async def test_explanation_names_the_file_the_group_and_the_rules() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        ended = await run("why", f"{origin.url}/private/open/a", "FooBot")
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


async def test_unreachable_file_shows_the_next_attempt() -> None:
    async with serve(text(503)) as origin:
        ended = await run("why", f"{origin.url}/", "FooBot")
    assert ended.code == 2
    assert ended.out.startswith("defer (unreachable): robots.txt could not be fetched: the server answered 503 at ")
    assert "; no copy from the last 30 days is cached; ask again at " in ended.out.splitlines()[0]
    assert "unreachable, 503, server_error" in ended.out


async def test_explanation_includes_redirects_and_fallback_agents() -> None:
    robots = "User-agent: other\nDisallow: /\n"
    async with serve(text(200, robots)) as target, serve(redirect(f"{target.url}/robots.txt")) as origin:
        ended = await run("why", f"{origin.url}/a", "FooBot", "other")
    assert ended.code == 1, ended.err
    assert f"          redirected to {target.url}/robots.txt" in ended.out
    assert "no group names foobot, and other comes next and has one" in ended.out


async def test_server_shows_verdicts_of_earlier_versions(store_url: str, store_client: object) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /\n")) as origin, service(store_url) as url:
        first = await run("why", f"{origin.url}/a", "FooBot", "--server", url)
        assert first.code == 1, first.err
        assert "disallow (rule, line 2: disallow: /), by version " in first.out
        answer = json.loads((await run("why", f"{origin.url}/a", "FooBot", "--server", url, "--json")).out)
    assert answer["verdict"] == "disallow"
    assert [version["verdict"] for version in answer["before"]] == ["disallow"]
    assert answer["explanation"]["matched"] == 1


@pytest.mark.parametrize("arguments", [(), ("http://h/",), ("gopher://h/", "A"), ("http://h/", "()")])
async def test_bad_arguments_exit_with_3(arguments: tuple[str, ...]) -> None:
    ended = await run("why", *arguments)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err
    assert "Traceback" not in ended.err


def test_every_source_has_a_text() -> None:
    assert set(_SOURCES) == set(Source)
