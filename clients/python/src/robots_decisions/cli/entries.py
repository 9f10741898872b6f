"""What a line of the input asks, and its record: the bytes by which lines are sorted and kept in temporary files."""

import json
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from robots_decisions.cli.origins import origin_of

URL_LIMIT = 16 * 1024
"""Bytes of the longest URL, as the service has it."""

LISTED_LINE_LIMIT = URL_LIMIT + 8
"""Bytes of the longest line of a list."""

AGENT_LIMIT = 4096
"""Bytes of the longest agent of a log."""

UNREADABLE: Final = "unreadable"
NO_URL: Final = "no_url"
REFUSED: Final = "refused"
MARK: Final = "mark"
"""Why a line asks nothing: it cannot be read; it does not say which page; the page was refused at that time."""

_ASKED, _NOT_ASKED = b"+", b"-"


class Entry(NamedTuple):
    """A page; of a log also when it was fetched (Unix seconds), and what the decision log says about it."""

    url: str
    agent: str | None = None
    at: float | None = None
    dialect: str | None = None
    override: str | None = None


class NotAsked(Exception):
    """A line that asks nothing: `reason` is UNREADABLE, NO_URL, REFUSED or MARK; `detail` says what is wrong."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class Line(NamedTuple):
    """A line: its number, the origin that it is about, and what it asks."""

    number: int
    origin: str
    entry: Entry | NotAsked


ReadEntry: TypeAlias = Callable[[bytes], Entry | None]
"""Reads a line; None for one that is empty or a comment. Raises NotAsked."""


def read_url(written: bytes) -> Entry | None:
    """Read a line of a list of URLs."""
    text = written.removeprefix(b"\xef\xbb\xbf").strip()
    if not text or text.startswith(b"#"):
        return None
    url = text.decode("utf-8", "replace")
    if len(text) > URL_LIMIT or len(written) >= LISTED_LINE_LIMIT:  # of a longer line, only the beginning is read
        raise NotAsked(UNREADABLE, f"{url[:100]!r} is longer than {URL_LIMIT} bytes.")
    if b"\n" in text:  # of a table
        raise NotAsked(UNREADABLE, f"{url[:100]!r} has a line break.")
    return Entry(url)


def record_of(number: int, written: bytes | NotAsked, read: ReadEntry) -> bytes | None:
    """The record of a line, which sorts by origin, time and number; None for a line without one.

    Its fields stand between tabs: the origin, the milliseconds of a fetch, the number, and the entry.
    """
    try:
        if isinstance(written, NotAsked):
            raise written
        entry = read(written)
    except NotAsked as error:
        return b"\t\t%015d%b\t%b\n" % (number, _NOT_ASKED, json.dumps((error.reason, error.detail)).encode())
    if entry is None:
        return None
    if entry.at is None:  # a URL alone, in which no line break is possible
        url = entry.url.encode()
        return b"%b\t\t%015d%b\t%b\n" % (origin_of(url), number, _ASKED, url)
    origin, millis = origin_of(entry.url.encode()), int(entry.at * 1000)
    return b"%b\t%015d\t%015d%b\t%b\n" % (origin, millis, number, _ASKED, json.dumps(entry).encode())


def line_of(record: bytes) -> Line:
    """The line of a record."""
    origin, millis, number, content = record[:-1].split(b"\t", 3)
    entry: Entry | NotAsked
    if number.endswith(_NOT_ASKED):
        entry = NotAsked(*json.loads(content))
    elif millis:
        entry = Entry(*json.loads(content))
    else:
        entry = Entry(content.decode())
    return Line(int(number[:-1]), origin.decode("utf-8", "replace"), entry)
