"""The MCP server, by the client of the SDK, over both transports, against a real service."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import httpx2
import pytest
from mcp.client import Client

from tests.clients.agents import over_stdio
from tests.clients.commands import command, run
from tests.clients.permitting import Permitting, allow
from tests.clients.site import Site, new_address
from tests.engines import free_port
from tests.origins import serve, text

ROBOTS = """User-agent: *
Disallow: /private/ # ours
Content-Signal: search=yes, ai-train=no
Crawl-delay: 1
Licence: x

User-agent: Otherbot
User-agent: Thirdbot
Disallow: /*.pdf$
Disallow:
Request-rate: 1/20s 0800-1000
Visit-time: 0600-0845

Sitemap: https://www.example.com/sitemap.xml
License: https://www.example.com/licence.xml
"""


@asynccontextmanager
async def listening(*arguments: str) -> AsyncIterator[str]:
    """The URL of a server over HTTP."""
    port = free_port()
    async with command("mcp", "--http", "--port", str(port), *arguments):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def over_http(*arguments: str) -> AsyncIterator[Client]:
    async with listening(*arguments) as url, Client(url) as client:
        yield client


Connect: TypeAlias = "Callable[[], AbstractAsyncContextManager[Client]]"


@pytest.fixture(params=[over_stdio, over_http])
def connect(request: pytest.FixtureRequest, service_url: str) -> Connect:
    # The connection belongs to the task that opened it, so a test opens it itself.
    return partial(request.param, "--agent", "ExampleBot", "--server", service_url)


@pytest.fixture
def connect_stdio(service_url: str) -> Connect:
    return partial(over_stdio, "--agent", "ExampleBot", "--server", service_url)


async def _ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def _error(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (content,) = result.content
    assert content.type == "text"
    return content.text


async def test_server_says_its_version(connect_stdio: Connect) -> None:
    async with connect_stdio() as client:
        assert client.server_info is not None
        assert client.server_info.version == "sources"


async def test_page_is_decided_reserved_fetched_and_reported(connect: Connect) -> None:
    async with connect() as client, serve(Site(ROBOTS), host=new_address()) as origin:
        page = f"{origin.url}/page"
        said = await _ask(client, "may_fetch", url=page)
        assert (said["may_fetch_now"], said["verdict"], said["seconds_between_pages"]) == (True, "allow", 1.0)
        assert said["licences"] == ["https://www.example.com/licence.xml"]

        slot = await _ask(client, "reserve", url=page)
        assert (slot["fetch_now"], slot["outcome"]) == (True, "reserved")
        taken = await _ask(client, "reserve", url=page, max_wait=0)
        assert (taken["fetch_now"], taken["outcome"], taken["permit"]) == (False, "defer", None)
        assert taken["ask_again_in"] > 0
        done = await _ask(client, "report", permit=slot["permit"], status=503, retry_after="60", seconds=0.1)
        assert done["leave_site_alone_for"] == pytest.approx(60, abs=1)
        assert "Fetch nothing" in done["what_to_do"]

        other = await _ask(client, "reserve", url=page, max_wait=0)
        assert (other["fetch_now"], other["outcome"]) == (False, "defer")


async def test_disallow_and_defer_are_never_an_allow(connect: Connect) -> None:
    async with connect() as client:
        async with serve(Site(ROBOTS), host=new_address()) as origin:
            for tool, decided in (("may_fetch", "verdict"), ("reserve", "outcome")):
                said = await _ask(client, tool, url=f"{origin.url}/private/x")
                assert said[decided] == "disallow"
                assert said["what_to_do"].startswith("Do not fetch this page")
                assert "Line 2" in said["why"]
                refused = await _ask(client, tool, url=f"{origin.url}/page", purposes=["search", "ai-train"])
                assert refused[decided] == "disallow"
                assert "ai-train" in refused["why"]
        async with serve(text(503, ""), host=new_address()) as broken:
            said = await _ask(client, "may_fetch", url=f"{broken.url}/page")
            assert (said["may_fetch_now"], said["verdict"]) == (False, "defer")
            assert said["ask_again_at"] in said["what_to_do"]
            slot = await _ask(client, "reserve", url=f"{broken.url}/page", max_wait=0)
            assert (slot["fetch_now"], slot["outcome"]) == (False, "defer")
            assert slot["ask_again_in"] > 1


async def test_unused_slot_is_free_for_others(connect_stdio: Connect) -> None:
    async with connect_stdio() as client, serve(Site(ROBOTS), host=new_address()) as origin:
        slot = await _ask(client, "reserve", url=f"{origin.url}/page")
        done = await _ask(client, "report", permit=slot["permit"], not_fetched=True)
        assert done["released"] is True
        assert (await _ask(client, "reserve", url=f"{origin.url}/page", max_wait=0))["fetch_now"] is True


async def test_file_of_a_site_is_explained_line_by_line(connect_stdio: Connect) -> None:
    async with connect_stdio() as client:
        async with serve(Site(ROBOTS), host=new_address()) as origin:
            said = await _ask(client, "explain_robots", url=f"{origin.url}/private/x")
        assert (said["verdict"], said["group"], said["dialect"]) == ("disallow", "*", "rfc9309")
        assert said["file"] == f"{origin.url}/robots.txt: successful, 200"
        lines = {line["line"]: (line["means"], line["applies"]) for line in said["lines"]}
        assert lines[1] == ("begins the group for *", True)
        assert lines[2] == ("disallows URLs whose path starts with /private/", True)
        assert lines[3] == ("states content-signal: search=yes, ai-train=no", True)
        assert "asks for one page every 1 s" in lines[4][0]
        assert lines[5][0].startswith("warning: ")
        assert lines[7] == ("begins the group for Otherbot, Thirdbot", False)
        assert lines[8] == ("names one more crawler of the group", None)
        assert lines[9] == ("disallows URLs whose path matches /*.pdf$", False)
        assert lines[10][0] == "disallows nothing"
        assert "every 20 s from 08:00 to 10:00 UTC" in lines[11][0]
        assert "welcomes visits from 06:00 to 08:45 UTC" in lines[12][0]
        assert lines[14] == ("names a sitemap, for every crawler", None)
        assert lines[15][0] == "names a licence (RSL), for every crawler"
        assert said["next_line"] is None


async def test_pasted_file_is_explained_for_any_crawler(connect_stdio: Connect) -> None:
    async with connect_stdio() as client:
        url = "https://www.example.com/a.pdf"
        said = await _ask(client, "explain_robots", url=url, robots=ROBOTS, agent="Thirdbot")
        assert (said["verdict"], said["group"], said["file"], said["agent"]) == (
            "disallow",
            "thirdbot",
            "pasted",
            "Thirdbot",
        )
        assert {line["line"] for line in said["lines"] if line["applies"]} == {7, 9, 10, 11, 12}


async def test_long_file_is_explained_in_parts(connect_stdio: Connect) -> None:
    async with connect_stdio() as client:
        written = "\ufeffUser-agent: *\r\n" + "".join(f"# {n}\rDisallow: /{n:03}\n" for n in range(300))
        asked = {"url": "https://www.example.com/", "robots": written}
        first = await _ask(client, "explain_robots", **asked)
        assert len(first["lines"]) == 200
        second = await _ask(client, "explain_robots", **asked, first_line=first["next_line"])
        assert second["next_line"] is None
        meanings = [line["means"] for line in (*first["lines"], *second["lines"])]
        assert meanings[1:] == [f"disallows URLs whose path starts with /{n:03}" for n in range(300)]


async def test_site_without_a_file_is_explained(connect_stdio: Connect) -> None:
    async with connect_stdio() as client:
        async with serve(text(404, ""), host=new_address()) as origin:
            said = await _ask(client, "explain_robots", url=f"{origin.url}/x")
        assert (said["verdict"], said["lines"], said["group"]) == ("allow", [], None)
        assert said["file"] == f"{origin.url}/robots.txt: unavailable, 404"


async def test_errors_say_what_to_do(connect_stdio: Connect) -> None:
    async with connect_stdio() as client:
        error = await _error(client, "may_fetch", url="example.com/page")
        assert "start it with http:// or https://" in error
        assert "Do not fetch the page" in error
        assert "'search', 'ai-input' or 'ai-train'" in await _error(
            client, "may_fetch", url="http://a.example/", purposes=["x"]
        )
        assert "at most 16384 characters" in await _error(client, "may_fetch", url="http://a.example/" + "x" * 16384)
        assert "not a permit that this service issued" in await _error(client, "report", permit="x", status=200)
        assert "Pass not_fetched alone" in await _error(client, "report", permit="x", status=200, not_fetched=True)
        assert "less than or equal to 45" in await _error(client, "reserve", url="http://a.example/", max_wait=100)


async def test_tools_have_schemas_and_dialects_are_resources(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"may_fetch", "reserve", "report", "explain_robots"}
        for tool in tools.values():
            assert tool.output_schema is not None
            assert tool.description is not None
            assert set(tool.output_schema["required"]) == set(tool.output_schema["properties"])
            assert "agent" not in tool.input_schema["properties"] or tool.name == "explain_robots"
        assert tools["may_fetch"].annotations is not None
        assert tools["may_fetch"].annotations.read_only_hint is True
        names = {resource.name: resource.uri for resource in (await client.list_resources()).resources}
        assert set(names) == {"rfc9309", "google", "seznam", "draft1996", "v2"}
        assert "longest rule" in str((await client.read_resource(names["rfc9309"])).contents)


@pytest.mark.parametrize("connected", [over_stdio, over_http])
async def test_silent_service_permits_nothing(connected: Any) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with connected("--agent", "ExampleBot", "--server", url) as client:
        for tool in ("may_fetch", "reserve", "explain_robots"):
            assert "cannot be reached" in await _error(client, tool, url="http://a.example/")


async def test_purposes_of_the_command_are_part_of_each_question(service_url: str) -> None:
    arguments = ("--agent", "ExampleBot", "--server", service_url, "--purpose", "ai-train")
    async with serve(Site(ROBOTS), host=new_address()) as origin, over_stdio(*arguments) as client:
        assert (await _ask(client, "may_fetch", url=f"{origin.url}/page"))["verdict"] == "disallow"
        both = await _ask(client, "may_fetch", url=f"{origin.url}/page", purposes=["search"])
        assert {name: it["state"] for name, it in both["purposes"].items()} == {"search": "yes", "ai-train": "no"}


async def test_other_hosts_and_origins_are_refused_over_http(service_url: str) -> None:
    arguments = ("--agent", "ExampleBot", "--server", service_url, "--allow-host", "mcp.example.com")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    fields = {"Accept": "application/json, text/event-stream"}
    async with listening(*arguments) as url, httpx2.AsyncClient(trust_env=False) as browser:
        for more, status in (
            ({"Host": "attacker.example"}, 421),
            ({"Origin": "https://attacker.example"}, 403),
            ({"Host": "127.0.0.1.attacker.example:80"}, 421),
        ):
            assert (await browser.post(url, json=message, headers={**fields, **more})).status_code == status
        named = await browser.post(url, json=message, headers={**fields, "Host": "mcp.example.com"})
        assert named.status_code not in {403, 421}


async def test_slips_of_the_command_line_are_errors(service_url: str) -> None:
    ended = await run("mcp", "--server", service_url)
    assert (ended.code, "--agent" in ended.err) == (3, True)
    ended = await run("mcp", "--agent", "ExampleBot", "--server", "127.0.0.1:8080")
    assert (ended.code, "Invalid service URL" in ended.err) == (3, True)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = str(listener.getsockname()[1])
        ended = await run("mcp", "--agent", "ExampleBot", "--http", "--port", taken)
    assert (ended.code, f"Cannot listen on 127.0.0.1 port {taken}" in ended.err) == (3, True)


async def test_a_reservation_is_signed_only_if_the_operator_lets_it() -> None:
    headers = {"Signature-Agent": 'sig1="https://bot.example.com"', "Signature-Input": "sig1=()", "Signature": "a"}
    answer = {**allow(), "signed": {"method": "GET", "headers": headers}, "unsigned": None}
    for arguments, sent in (([], None), (["--sign"], headers)):
        permitting = Permitting(answer if arguments else allow())
        async with (
            serve(permitting) as service,
            over_stdio("--agent", "ExampleBot", "--server", service.url, *arguments) as client,
        ):
            slot = await _ask(client, "reserve", url="https://www.example.com/")
        assert slot["send_headers"] == sent
        assert ("send_headers" in slot["what_to_do"]) == (sent is not None)
        assert permitting.asked[0].get("sign", False) == bool(arguments)
