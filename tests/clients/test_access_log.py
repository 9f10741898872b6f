"""Lines of logs: JSON, the common and the combined format, and what is said of a line that cannot be read."""

import pytest
from robots_decisions.cli.access_log import Defaults, read_entry
from robots_decisions.cli.entries import Entry, NotAsked
from robots_decisions.cli.instants import read_instant

STAMP = "10/Oct/2026:13:55:36 -0700"
TIME = "2026-10-10T20:55:36Z"
DEFAULTS = Defaults("DefaultBot", "https://www.example.com")


def fetch(url: str, agent: str, time: str, dialect: str | None = None, override: str | None = None) -> Entry:
    return Entry(url, agent, read_instant(time), dialect, override)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (
            f'10.0.0.7 - - [{STAMP}] "GET http://h/a?b=1 HTTP/1.1" 200 2326 "http://r/" "FooBot/1.0 (a)"',
            fetch("http://h/a?b=1", "FooBot/1.0 (a)", TIME),
        ),
        (f'h - u [{STAMP}] "GET /a HTTP/1.0" 304 -', fetch("https://www.example.com/a", "DefaultBot", TIME)),
        (f'h - u [{STAMP}] "GET /a b HTTP/1.0" 304 -', fetch("https://www.example.com/a b", "DefaultBot", TIME)),
        (f'h - - [{STAMP}] "GET /" 200 1 "-" "-"', fetch("https://www.example.com/", "DefaultBot", TIME)),
        (
            rf'::1 - - [{STAMP}] "HEAD http://h/\"\xC3\xa9 HTTP/2.0" 200 1 "-" "Foo\"Bot\\1" more "fields" 0.2',
            fetch('http://h/"é', 'Foo"Bot\\1', TIME),
        ),
        (f'h - - [{STAMP}] "GET http://h/ HTTP/1.1" 200 1 "-" "A" TCP_MISS:D', fetch("http://h/", "A", TIME)),
        (f'[::1] - - [{STAMP}] "GET http://h/ HTTP/1.1" 200 1 "-" "A"', fetch("http://h/", "A", TIME)),
        (
            '{"url": "/a", "agent": null, "time": "2026-10-10T22:55:36.9+02:00"}',
            fetch("https://www.example.com/a", "DefaultBot", "2026-10-10T20:55:36.9Z"),
        ),
        ('{"url": "http://h/", "agent": "A", "at": 1791665736.5}', fetch("http://h/", "A", "2026-10-10T20:55:36.5Z")),
        (
            '{"url": "http://h/", "agent": "A", "time": "2026-10-10T20:55:36z", "dialect": "google", "override": "x"}',
            fetch("http://h/", "A", TIME, "google", "x"),
        ),
        (
            f'{{"url": "http://h/", "agent": "", "dialect": " ", "time": "{TIME}"}}',
            fetch("http://h/", "DefaultBot", TIME),
        ),
        (f'h - - [{STAMP}] "GET http://h/ HTTP/1.1" 200 1 "-" " "', fetch("http://h/", "DefaultBot", TIME)),
        (rf'h - - [{STAMP}] "GET http://h/ HTTP/1.1" 200 1 "-" "\x20"', fetch("http://h/", "DefaultBot", TIME)),
    ],
)
def test_lines_are_read(line: str, read: Entry) -> None:
    assert read_entry(f"{line}\r\n".encode(), DEFAULTS) == read


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f'h - - [{STAMP}] "CONNECT h:443 HTTP/1.1" 200 1 "-" "A"', "no_url"),
        (f'h - - [{STAMP}] "OPTIONS * HTTP/1.1" 200 1 "-" "A"', "no_url"),
        (f'h - - [{STAMP}] "-" 408 - "-" "-"', "no_url"),
        (f'h - - [{STAMP}] "GET http://h/ HTTP/1.1" 403 1 "-" "A" TCP_DENIED:HIER_NONE', "refused"),
        ('{"verdict": "defer", "url": "http://h/"}', "refused"),
        ('{"mark": "end", "lost": 0, "process": "p", "number": 2, "previous": ""}', "mark"),
        ('{"verdict": "allow", "url_sha256": "0", "origin": "http://h"}', "no_url"),
    ],
)
def test_lines_without_a_fetch_are_named_as_such(line: str, reason: str) -> None:
    with pytest.raises(NotAsked) as raised:
        read_entry(line.encode(), DEFAULTS)
    assert (raised.value.reason, raised.value.detail) == (reason, None)


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
        ('{"url": " ", "agent": "A", "time": 1}', "The line has no url."),
        ('{"url": "http://h/", "agent": " ", "time": 1}', "The line has no agent; give --agent."),
        ("[1]", "'[1]' is neither a JSON object nor"),
        ('{"url": "http://h/", "agent": "A", "time": "2026-10-10T20:55:36"}', "neither RFC 3339"),
        ('{"url": 5, "agent": "A", "time": 1}', "url is 5; it must be a string."),
        (f'{{"url": "http://h/{"a" * 20_000}", "agent": "A", "time": 1}}', "longer than 16384 bytes."),
    ],
)
def test_bad_lines_say_what_is_wrong(line: str, message: str) -> None:
    with pytest.raises(NotAsked) as raised:
        read_entry(line.encode(), Defaults())
    assert raised.value.reason == "unreadable"
    assert message in str(raised.value.detail)
