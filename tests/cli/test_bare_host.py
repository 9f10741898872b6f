"""A bare host means https, and http where https cannot be reached."""

import json

import pytest

from app.cli.bare_host import candidates
from tests.cli.command import run
from tests.origins import LoopbackOrigin, http_only, serve, text

ROBOTS = "User-agent: *\nDisallow: /private/\n"


def host_of(origin: LoopbackOrigin) -> str:
    return origin.url.removeprefix("http://")


@pytest.mark.parametrize(
    "bare",
    [
        "example.com",
        "example.com/page?a=b",
        "example.com:8080/x",
        "localhost:8080",
        "127.0.0.1",
        "[::1]:80/",
        "é.example",
    ],
)
def test_bare_host_is_tried_by_https_first(bare: str) -> None:
    assert candidates(bare) == (f"https://{bare}", f"http://{bare}")


@pytest.mark.parametrize(
    "written",
    ["http://example.com/", "gopher://h.example/", "mailto:a@example.com", "nonsense", "", "/a.html", "a b.example"],
)
def test_other_text_is_no_bare_host(written: str) -> None:
    assert candidates(written) == (written,)


async def test_decide_falls_back_to_http() -> None:
    async with serve(at_once=http_only(text(200, ROBOTS))) as origin:
        ended = await run("decide", f"{host_of(origin)}/private/", "--agent", "ExampleBot")
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.startswith(f"disallow  {origin.url}/private/\n")


async def test_decide_reports_https_if_neither_can_be_reached() -> None:
    async with serve(text(200)) as origin:
        closed = host_of(origin)
    ended = await run("decide", closed, "--agent", "ExampleBot")
    assert ended.code == 2
    assert ended.out.startswith(f"defer     https://{closed}/\n")


async def test_server_error_by_https_is_no_reason_for_http() -> None:
    ended = await run("decide", "https.example", "--agent", "ExampleBot", "--json", settings={"ALLOW_PORTS": "*"})
    assert json.loads(ended.out)["url"] == "https://https.example/"  # its name cannot be resolved for http either


async def test_pasted_file_says_the_same_of_a_bare_host() -> None:
    ended = await run("test", "-", "example.com/private/", "--agent", "ExampleBot", given=ROBOTS.encode())
    assert ended.code == 1
    assert "  https://example.com/private/  " in ended.out
