"""A drop-in for `urllib.robotparser`: the same class, but files are read as crawlers read them (RFC 9309).

from robots_core.robotparser import RobotFileParser
"""

from collections.abc import Iterable
from urllib.robotparser import RequestRate
from urllib.robotparser import RobotFileParser as _Standard

from robots_core.drop_in import agent_or_star, crawl_delay, path_of, request_rate
from robots_core.file import File, read


class RobotFileParser(_Standard):
    """`urllib.robotparser.RobotFileParser`. `read` fetches as that does, and is the only method that does I/O.

    `file` is what was parsed, for what this class cannot say: why, and by which line.
    """

    allow_all: bool
    disallow_all: bool

    def __init__(self, url: str = "") -> None:
        super().__init__(url)
        self.file: File | None = None
        self._text = ""

    def parse(self, lines: Iterable[str]) -> None:
        """Read the lines of a file."""
        self._text = "\n".join(lines)
        self.file = read(self._text.encode("utf-8", "surrogateescape"))
        self.modified()

    def can_fetch(self, useragent: str, url: str) -> bool:
        """Whether `useragent` may fetch `url`; False before a file was read."""
        if self.disallow_all or self.allow_all:
            return not self.disallow_all
        return self.file is not None and self.file.decide(path_of(url), agent_or_star(useragent)).allowed

    def crawl_delay(self, useragent: str) -> float | None:  # type: ignore[override]
        """The Crawl-delay in seconds, None for none; a fraction, if the file states one."""
        found = None if self.file is None else crawl_delay(self.file, useragent)
        return int(found) if found is not None and found.is_integer() else found

    def request_rate(self, useragent: str) -> RequestRate | None:
        """The Request-rate in force, in requests for so many seconds; None for none."""
        rate = None if self.file is None else request_rate(self.file, useragent)
        return None if rate is None else RequestRate(rate.documents, int(rate.seconds))

    def site_maps(self) -> list[str] | None:
        """The sitemaps, None for none."""
        return None if self.file is None else list(self.file.sitemaps) or None

    def __str__(self) -> str:
        return self._text
