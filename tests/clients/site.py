"""An origin that is crawled, and the log of it."""

import time
from collections.abc import Mapping, Sequence

from tests.origins import Exchange, text

HTML = {"Content-Type": "text/html", "Connection": "close"}


class Site:
    """An origin's pages by path, and the log of what was asked of it, with the instants."""

    def __init__(self, robots: str, pages: Mapping[str, str | Sequence[bytes]] | None = None) -> None:
        self._robots = robots
        self._pages = pages or {}
        self.log: list[tuple[float, str]] = []

    async def __call__(self, exchange: Exchange) -> None:
        path = exchange.path
        self.log.append((time.monotonic(), path))
        if path == "/robots.txt":
            await exchange.send(text(200, self._robots, {"Connection": "close"}))
            return
        page = self._pages.get(path, "a page")
        if isinstance(page, str):
            await exchange.send(text(200, page, HTML))
            return
        times = len(self.at(path))
        await exchange.send(page[min(times, len(page)) - 1])

    def at(self, path: str) -> list[float]:
        return [at for at, asked in self.log if asked == path]

    def most_beyond(self, interval: float) -> int:
        """By how many requests, in the worst of all windows of time, it was asked more often than every `interval`."""
        instants = [at for at, _ in self.log]
        windows = ((last, first) for last in range(len(instants)) for first in range(last + 1))
        # A hundredth of an interval is nobody's fault: it is asked on a machine with other work to do.
        return max(last - first - int((instants[last] - instants[first]) / interval + 0.01) for last, first in windows)

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.log]


def links(*paths: str) -> str:
    return "".join(f'<a href="{path}">a link</a>' for path in paths)
