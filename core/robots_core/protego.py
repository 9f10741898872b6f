"""A drop-in for protego: the same class and methods, but files are read as RFC 9309 says.

from robots_core.protego import Protego
"""

from collections.abc import Iterator
from datetime import time
from typing import NamedTuple

from robots_core.drop_in import agent_or_star, crawl_delay, path_of, request_rate, visit_window
from robots_core.file import File, read
from robots_core.robots.lines import Key
from robots_core.robots.rates import Window


class RequestRate(NamedTuple):
    """`requests` in so many `seconds`, between the UTC times of day; None for all day."""

    requests: int
    seconds: int
    start_time: time | None = None
    end_time: time | None = None


class VisitTime(NamedTuple):
    """The UTC times of day between which visits are welcome."""

    start_time: time
    end_time: time


class Protego:
    """`protego.Protego`. `file` is what was parsed, for what this class cannot say: why, and by which line."""

    def __init__(self, file: File) -> None:
        self.file = file

    @classmethod
    def parse(cls, content: str) -> "Protego":
        """Read a file."""
        if not isinstance(content, str):
            raise TypeError(f"Protego.parse expects str, got {type(content).__name__}")
        return cls(read(content.encode("utf-8", "surrogatepass")))

    def can_fetch(self, url: str, user_agent: str) -> bool:
        """Whether `user_agent` may fetch `url`."""
        return self.file.decide(path_of(url), agent_or_star(user_agent)).allowed

    def crawl_delay(self, user_agent: str) -> float | None:
        """The Crawl-delay in seconds, None for none."""
        return crawl_delay(self.file, user_agent)

    def request_rate(self, user_agent: str) -> RequestRate | None:
        """The Request-rate in force, None for none."""
        rate = request_rate(self.file, user_agent)
        if rate is None:
            return None
        window = (None, None) if rate.window is None else _times(rate.window)
        return RequestRate(rate.documents, int(rate.seconds), *window)

    def visit_time(self, user_agent: str) -> VisitTime | None:
        """The first Visit-time, None for none."""
        window = visit_window(self.file, user_agent)
        return None if window is None else VisitTime(*_times(window))

    @property
    def sitemaps(self) -> Iterator[str]:
        """The sitemaps that are absolute URLs."""
        return iter(self.file.sitemaps)

    @property
    def preferred_host(self) -> str | None:
        """The value of the first `Host:` line, None for none."""
        lines = () if self.file.robots is None else self.file.robots.extensions
        return next((line.text for line in lines if line.key is Key.HOST), None)


def _times(window: Window) -> tuple[time, time]:
    return time(*divmod(window.start, 60)), time(*divmod(window.end % (24 * 60), 60))
