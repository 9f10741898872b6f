"""`python -m app why`: how one answer came about."""

import json

import pytest

from app.cache.tiered_snapshots import Source
from app.cli.why import _REASONS, _SOURCES
from app.robots.verdict import Reason
from tests.cli.command import run
from tests.cli.serving import service
from tests.origins import redirect, serve, text

ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/open\nCrawl-delay: 5\n"


async def test_the_story_names_the_file_the_group_and_the_rules() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        ended = await run("why", f"{origin.url}/private/open/a", "FooBot")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "allow: a rule of the group decides."
    assert f"file      {origin.url}/robots.txt: successful, 200" in lines
    assert "group     no group names foobot, so the one for * applies (line 1)" in lines
    at = lines.index("rules     2 matched /private/open/a; the longest decides, and allow between equals")
    assert lines[at + 1 : at + 3] == [
        "          decides: line 3: allow: /private/open (13 bytes)",
        "          and line 2: disallow: /private (8 bytes)",
    ]
    assert "rate      one document every 5 s (crawl-delay, line 4)" in lines


async def test_a_file_that_cannot_be_had_ends_with_the_next_try() -> None:
    async with serve(text(503)) as origin:
        ended = await run("why", f"{origin.url}/", "FooBot")
    assert ended.code == 2
    assert ended.out.startswith("defer: robots.txt cannot be had, and no copy stands in: ask again later.\n")
    assert "unreachable, 503, server_error" in ended.out
    assert "\nretry     at " in ended.out


async def test_redirects_and_a_second_agent_are_part_of_the_story() -> None:
    robots = "User-agent: other\nDisallow: /\n"
    async with serve(text(200, robots)) as target, serve(redirect(f"{target.url}/robots.txt")) as origin:
        ended = await run("why", f"{origin.url}/a", "FooBot", "other")
    assert ended.code == 1, ended.err
    assert f"          redirected to {target.url}/robots.txt" in ended.out
    assert "no group names foobot, and other comes next and has one" in ended.out


async def test_a_service_also_tells_what_the_file_said_before(store_url: str, store_client: object) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /\n")) as origin, service(store_url) as url:
        first = await run("why", f"{origin.url}/a", "FooBot", "--server", url)
        assert first.code == 1, first.err
        assert "disallow (rule, line 2: disallow: /), by version " in first.out
        told = json.loads((await run("why", f"{origin.url}/a", "FooBot", "--server", url, "--json")).out)
    assert told["verdict"] == "disallow"
    assert [version["verdict"] for version in told["before"]] == ["disallow"]
    assert told["explanation"]["matched"] == 1


@pytest.mark.parametrize("arguments", [(), ("http://h/",), ("gopher://h/", "A"), ("http://h/", "()")])
async def test_what_cannot_be_asked_ends_with_3(arguments: tuple[str, ...]) -> None:
    ended = await run("why", *arguments)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err
    assert "Traceback" not in ended.err


def test_every_reason_and_every_source_has_its_words() -> None:
    assert set(_REASONS) == set(Reason)
    assert set(_SOURCES) == set(Source)
