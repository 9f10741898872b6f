"""`python -m app squid-helper`: squid's external ACL protocol, spoken over pipes."""

import asyncio
import sys
from urllib.parse import unquote

import pytest

from app.cli.squid_helper import HelperLine, read_line
from tests.cli.command import ROOT, run
from tests.cli.serving import service
from tests.origins import Gate, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

ROBOTS = "User-agent: ExampleBot\nDisallow: /private/\nDisallow: /%C3%A9\n"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"7 http://h/a%2Fb Ex%20Bot/1 -\n", HelperLine("7", "http://h/a%2Fb", "Ex Bot/1")),
        (b"http://h/ ExampleBot\n", HelperLine("", "http://h/", "ExampleBot")),
        (b"0 http://h/ - -\n", HelperLine("0", "http://h/", None)),
        (b"0 http://h/\xc3\xa9 A more words\n", HelperLine("0", "http://h/%C3%A9", "A")),
        (b"12\n", HelperLine("12", "-", None)),
        (b"\n", HelperLine("", "-", None)),
    ],
)
def test_lines_of_squid_are_read(written: bytes, read: HelperLine) -> None:
    assert read_line(written) == read


async def test_each_channel_gets_its_answer(store_url: str) -> None:
    async with serve(text(200, ROBOTS)) as origin, serve(text(503)) as failing, service(store_url) as url:
        lines = (
            f"0 {origin.url}/page ExampleBot/1.0%20(a) -",
            f"1 {origin.url}/private/x ExampleBot -",
            f"2 {failing.url}/ ExampleBot -",
            f"3 {origin.url}/é ExampleBot -",
            "4 nonsense ExampleBot -",
            f"5 {origin.url}/page - -",
            "6",
        )
        ended = await run("squid-helper", "--server", url, given="".join(f"{line}\n" for line in lines).encode())
    assert (ended.code, ended.err) == (0, "")
    answers = dict(line.split(" ", 1) for line in ended.out.splitlines())
    assert sorted(answers) == ["0", "1", "2", "3", "4", "5", "6"]
    assert answers["0"] == "OK robots_=allow"
    said = unquote(answers["1"])
    assert said == 'ERR robots_=disallow message=disallow rule "disallow: /private/";line=2'
    assert answers["2"] == "ERR robots_=defer message=defer%20unreachable"
    assert answers["3"].startswith("ERR robots_=disallow ")
    assert "is not an absolute URL" in unquote(answers["4"])
    for channel in "456":
        assert answers[channel].startswith("BH message=")


async def test_lines_without_channels_are_answered_in_order(store_url: str) -> None:
    async with serve(text(200, ROBOTS)) as origin, service(store_url) as url:
        lines = "".join(f"{origin.url}/{path} -\n" for path in ("private/", "page", "private/"))
        ended = await run("squid-helper", "--server", url, "--agent", "ExampleBot", given=lines.encode())
    assert [line.split()[0] for line in ended.out.splitlines()] == ["ERR", "OK", "ERR"]


async def test_slow_site_delays_no_other_channel(store_url: str) -> None:
    gate = Gate(text(200))
    async with serve(gate) as slow, serve(text(200, ROBOTS)) as origin, service(store_url) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app", "squid-helper", "--server", url),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"0 {slow.url}/ A\n1 {origin.url}/ A\n".encode())
        assert await process.stdout.readline() == b"1 OK robots_=allow\n"
        gate.open.set()
        assert await process.stdout.readline() == b"0 OK robots_=allow\n"
        process.stdin.close()
        assert await process.wait() == 0


async def test_missing_service_is_bh_for_each_line() -> None:
    ended = await run("squid-helper", "--server", "http://127.0.0.1:1", given=b"0 http://h/ A\n1 http://h/ A\n")
    assert ended.code == 0
    assert [line[:12] for line in sorted(ended.out.splitlines())] == ["0 BH message", "1 BH message"]
    assert "does not respond" in unquote(ended.out)


async def test_endless_line_ends_the_helper() -> None:
    ended = await run("squid-helper", "--server", "http://127.0.0.1:1", given=b"0 http://h/" + b"a" * 200_000)
    assert (ended.code, ended.out) == (3, "")
    assert "A line is longer than" in ended.err
