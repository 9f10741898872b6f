"""Lines of logs: JSON, the common and the combined format, and what is said of a line that cannot be read."""

import gzip
import io
import os
import random
from collections.abc import Sequence
from io import BufferedIOBase

import pytest

from app.cli.access_log import (
    LOGGED_LINE_LIMIT,
    BadLine,
    Defaults,
    LoggedFetch,
    NotAuditable,
    numbered_lines,
    read_entry,
)
from app.cli.exit_codes import Failed
from app.cli.line_reader import BLOCK, blocks

STAMP = "10/Oct/2026:13:55:36 -0700"
TIME = "2026-10-10T20:55:36Z"
COMPRESSED = gzip.compress(b"".join(random.Random(1).randbytes(50).hex().encode() + b"\n" for _ in range(1000)))
DEFAULTS = Defaults("DefaultBot", "https://www.example.com")


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (
            f'10.0.0.7 - - [{STAMP}] "GET http://h/a?b=1 HTTP/1.1" 200 2326 "http://r/" "FooBot/1.0 (a)"',
            LoggedFetch("http://h/a?b=1", "FooBot/1.0 (a)", TIME),
        ),
        (f'h - u [{STAMP}] "GET /a HTTP/1.0" 304 -', LoggedFetch("https://www.example.com/a", "DefaultBot", TIME)),
        (f'h - u [{STAMP}] "GET /a b HTTP/1.0" 304 -', LoggedFetch("https://www.example.com/a b", "DefaultBot", TIME)),
        (f'h - - [{STAMP}] "GET /" 200 1 "-" "-"', LoggedFetch("https://www.example.com/", "DefaultBot", TIME)),
        (
            rf'::1 - - [{STAMP}] "HEAD http://h/\"\xC3\xa9 HTTP/2.0" 200 1 "-" "Foo\"Bot\\1" more "fields" 0.2',
            LoggedFetch('http://h/"é', 'Foo"Bot\\1', TIME),
        ),
        (f'h - - [{STAMP}] "GET http://h/ HTTP/1.1" 200 1 "-" "A" TCP_MISS:D', LoggedFetch("http://h/", "A", TIME)),
        (f'[::1] - - [{STAMP}] "GET http://h/ HTTP/1.1" 200 1 "-" "A"', LoggedFetch("http://h/", "A", TIME)),
        (
            '{"url": "/a", "agent": null, "time": "2026-10-10T22:55:36.9+02:00"}',
            LoggedFetch("https://www.example.com/a", "DefaultBot", TIME),
        ),
        ('{"url": "http://h/", "agent": "A", "at": 1791665736.5}', LoggedFetch("http://h/", "A", TIME)),
        (
            '{"url": "http://h/", "agent": "A", "time": "2026-10-10T20:55:36z", "dialect": "google", "override": "x"}',
            LoggedFetch("http://h/", "A", TIME, "google", "x"),
        ),
    ],
)
def test_lines_are_read(line: str, read: LoggedFetch) -> None:
    assert read_entry(f"{line}\r\n".encode(), DEFAULTS) == read


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f'h - - [{STAMP}] "CONNECT h:443 HTTP/1.1" 200 1 "-" "A"', "without a URL"),
        (f'h - - [{STAMP}] "OPTIONS * HTTP/1.1" 200 1 "-" "A"', "without a URL"),
        (f'h - - [{STAMP}] "-" 408 - "-" "-"', "without a URL"),
        (f'h - - [{STAMP}] "GET http://h/ HTTP/1.1" 403 1 "-" "A" TCP_DENIED:HIER_NONE', "refused at that time"),
        ('{"verdict": "defer", "url": "http://h/"}', "refused at that time"),
        ('{"verdict": "allow", "url_sha256": "0", "origin": "http://h"}', "without a URL"),
    ],
)
def test_lines_without_a_fetch_are_named_as_such(line: str, reason: str) -> None:
    with pytest.raises(NotAuditable) as raised:
        read_entry(line.encode(), DEFAULTS)
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"url": "/a", "agent": "A", "time": 1}', "'/a' is a path alone; give --origin."),
        (f'h - - [{STAMP}] "GET /a HTTP/1.1" 200 1 "-" "A"', "'/a' is a path alone; give --origin."),
        (f'h - - [{STAMP}] "GET http://h/ HTTP/1.1" 200 1', "The line has no agent; give --agent."),
        ('h - - [10/Oct/2026:13:55:36] "GET http://h/ HTTP/1.1" 200 1', "neither a JSON object nor"),
        ('h - - [41/Oct/2026:13:55:36 +0000] "GET http://h/ HTTP/1.1" 200 1', "neither a JSON object nor"),
        ('h - - [01/Jan/0001:00:00:00 +0100] "GET http://h/ HTTP/1.1" 200 1', "neither a JSON object nor"),
        ('h - - [31/Dec/9999:23:59:59 -0100] "GET http://h/ HTTP/1.1" 200 1', "neither a JSON object nor"),
        (f'h - - [{STAMP}] "GET http://h/', "neither a JSON object nor"),
        ("[1]", "'[1]' is neither a JSON object nor"),
        ('{"url": "http://h/", "agent": "A", "time": "2026-10-10T20:55:36"}', "neither RFC 3339"),
        ('{"url": 5, "agent": "A", "time": 1}', "url is 5; it must be a string."),
        (f'{{"url": "http://h/{"a" * 20_000}", "agent": "A", "time": 1}}', "longer than 16384 bytes."),
    ],
)
def test_bad_lines_say_what_is_wrong(line: str, message: str) -> None:
    with pytest.raises(BadLine) as raised:
        read_entry(line.encode(), Defaults())
    assert message in str(raised.value)


async def lines_of(source: BufferedIOBase, into: list[tuple[int, bytes]]) -> None:
    async for block in numbered_lines(source):
        into += block


@pytest.mark.parametrize("lines", [[b"a" * (BLOCK - 1), b"", b"b"], [b"x" * 100] * 10_000, [b"a" * 300_000, b"b"], []])
async def test_no_line_is_lost_between_blocks(lines: Sequence[bytes]) -> None:
    data = b"\n".join(lines)
    found = [piece async for block in blocks(io.BytesIO(data), "the log", 1000) for piece in block]
    assert b"".join(found) == data
    assert max(map(len, found), default=0) <= 1000
    numbered: list[tuple[int, bytes]] = []
    await lines_of(io.BytesIO(data), numbered)
    assert numbered == [(n, line[:LOGGED_LINE_LIMIT]) for n, line in enumerate(data.splitlines(keepends=True), 1)]


async def test_lines_of_a_pipe_come_as_soon_as_they_are_complete() -> None:
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as source:
        blocks = numbered_lines(source)
        os.write(writes, b"one\ntw")
        assert await anext(blocks) == [(1, b"one\n")]
        os.write(writes, b"o\nthree\n")
        assert await anext(blocks) == [(2, b"two\n"), (3, b"three\n")]
        os.close(writes)
        assert [block async for block in blocks] == []


@pytest.mark.parametrize("damaged", [COMPRESSED[:-20], COMPRESSED[:-8] + b"\0" * 8, COMPRESSED[:9000] + b"damage"])
async def test_damaged_gzip_fails_after_the_lines_that_can_be_read(damaged: bytes) -> None:
    found: list[tuple[int, bytes]] = []
    with pytest.raises(Failed, match=r"^Cannot read the log: .+ It was read up to line \d+\.$") as raised:
        await lines_of(gzip.GzipFile(fileobj=io.BytesIO(damaged)), found)
    assert str(raised.value).endswith(f" line {len(found)}.")
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
