"""`python -m app decide` with several URLs and agents, warnings and colours."""

import asyncio
import json
import os
import pty
import sys
from pathlib import Path

from tests.cli.command import run
from tests.forked import LOOPBACK
from tests.origins import Exchange, serve, text

ROBOTS = "User-agent: ExampleBot\nDisallow: /private/\n\nUser-agent: *\nDissalow: /basket/\n"


async def test_every_url_is_decided_for_every_agent() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        urls = (f"{origin.url}/private/", f"{origin.url}/a")
        agents = ("--agent", "ExampleBot", "--agent", "OtherBot")
        ended = await run("decide", *urls, *agents)
        lines = (await run("decide", *urls, *agents, "--json")).out.splitlines()
    assert ended.code == 1
    blocks = [block.splitlines() for block in ended.out.split("\n\n")]
    asked = [(url, agent) for url in urls for agent in agents[1::2]]
    verdicts = ["disallow", "allow", "allow", "allow"]
    assert [block[0] for block in blocks] == [f"{it:<9} {url}" for it, (url, _) in zip(verdicts, asked, strict=True)]
    answers = [json.loads(line) for line in lines]
    assert [(it["url"], it["agent"]) for it in answers] == asked
    assert [it["verdict"] for it in answers] == verdicts
    assert len(origin.requests) == 2  # one for each command


async def test_decide_and_test_decide_for_each_agent_alike() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        agents = ("--agent", "@seo", "--agent", "ExampleBot")
        checked = await run("decide", f"{origin.url}/private/", *agents, "--json")
        tested = await run("test", "-", f"{origin.url}/private/", *agents, "--json", given=ROBOTS.encode())
    answers = [json.loads(line) for line in checked.out.splitlines()]
    rows = json.loads(tested.out)["rows"]
    assert len(rows) > 2
    assert [(it["agent"], it["verdict"]) for it in answers] == [(it["agent"], it["verdict"]) for it in rows]


async def test_unknown_category_is_an_error() -> None:
    ended = await run("decide", "http://h/", "--agent", "@nothing")
    assert (ended.code, ended.out) == (3, "")
    assert "Unknown category 'nothing'" in ended.err


async def test_fallback_is_looked_up_where_no_group_names_the_agent() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        ended = await run("decide", f"{origin.url}/private/", "--agent", "NewBot", "--fallback", "ExampleBot")
    assert ended.code == 1
    assert "group     examplebot (line 1)" in ended.out


async def test_warnings_are_printed_once_for_each_file() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        arguments = (f"{origin.url}/a", f"{origin.url}/b", "--agent", "ExampleBot")
        assert (await run("decide", *arguments)).err == ""
        ended = await run("decide", *arguments, "--warnings")
    warned = ended.err.splitlines()
    assert ended.code == 0
    assert f"{origin.url}/robots.txt:5: typo-key: " in ended.err
    assert len(warned) == len(set(warned))


async def closed_to_acme(exchange: Exchange) -> None:
    await exchange.send(text(200, "Usr-agent: *\nDisallow: /" if b"AcmeBot/2.0" in exchange.head else ROBOTS))


async def test_warnings_are_about_the_file_of_the_fetch_profile(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text('[agents.AcmeBot]\nprofile = "acme"\n[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n')
    settings = {**LOOPBACK, "AGENTS_FILE": str(file)}
    async with serve(closed_to_acme) as origin:
        arguments = ("decide", f"{origin.url}/a", "--warnings", "--agent")
        acme = await run(*arguments, "AcmeBot", settings=settings)
        both = await run(*arguments, "acmebot", "--agent", "ExampleBot", settings=settings)
    assert f"{origin.url}/robots.txt:1: unknown-key: " in acme.err
    assert f"{origin.url}/robots.txt:5: typo-key: " not in acme.err
    assert both.err.startswith(acme.err)
    assert f"{origin.url}/robots.txt:5: typo-key: " in both.err


async def test_blocked_address_names_its_setting() -> None:
    async with serve(text(200)) as origin:
        ended = await run("decide", f"{origin.url}/", "--agent", "ExampleBot", settings={})
    assert (ended.code, origin.requests) == (1, [])
    assert "ALLOW_ADDRESSES" in ended.out


async def _on_a_terminal(**environment: str) -> str:
    """The output of `test` to a terminal."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", "test", "-", "http://h.example/private/", "--agent", "ExampleBot"),
        env={**os.environ, "NO_COLOR": "", "TERM": "xterm", **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=theirs,
    )
    await process.communicate(ROBOTS.encode())
    os.close(theirs)
    output = os.read(ours, 10_000).decode()
    os.close(ours)
    return output


async def test_verdicts_have_colours_on_a_terminal_only() -> None:
    assert (await _on_a_terminal()).startswith("\x1b[31mdisallow\x1b[0m  ExampleBot")
    assert (await _on_a_terminal(NO_COLOR="1")).startswith("disallow  ExampleBot")
    assert (await _on_a_terminal(TERM="dumb")).startswith("disallow  ExampleBot")
    piped = await run("test", "-", "http://h.example/", "--agent", "ExampleBot", given=ROBOTS.encode())
    assert piped.out.startswith("allow     ExampleBot")
