"""Read the sitemaps that a robots.txt names, and those that their indexes list, within bounds.

Only what robots.txt names is read, so the service fetches no URL of the caller's choice. Sitemaps are read one after
another, each by a permit of its own.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.api.sites.reader import ReadBounds, ReadOutcome, SiteReader
from app.api.sites.sitemap import URLS, Sitemap, SitemapText
from robots_core.origin import BadUrl, Origin, Target, read_target

SITEMAPS: Final = 10
"""Sitemaps that are read for one answer, indexes among them."""

SITEMAP_BYTES: Final = 10_000_000
"""Decoded bytes that are read for one answer."""

SITEMAP_SECONDS: Final = 20.0
"""Seconds after which no further sitemap is begun."""


class ReadSitemap(NamedTuple):
    """What became of one sitemap: of `urls` pages, or sitemaps if it `is_index`; `detail` says why there are none."""

    url: str
    outcome: ReadOutcome
    urls: int = 0
    is_index: bool = False
    detail: str = ""


class SitemapUrls(NamedTuple):
    """The URLs of the origin that its sitemaps list, each once, and what became of each sitemap.

    `other_origins` counts listed URLs of other origins, `unread` sitemaps that were not asked for, since a bound was
    reached. `complete`: no bound left anything out.
    """

    urls: list[str]
    sitemaps: list[ReadSitemap]
    other_origins: int
    unread: int
    complete: bool


Parse: TypeAlias = Callable[[SitemapText], Awaitable[Sitemap]]
"""Reads a sitemap, which may take seconds."""


async def read_sitemaps(
    origin: Origin, named: Sequence[str], reader: SiteReader, parse: Parse, caller: str
) -> SitemapUrls:
    """Read the sitemaps with the URLs `named`, which the file names. Raises Busy, and what `parse` does."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + SITEMAP_SECONDS
    left = deque((url, False) for url in dict.fromkeys(named))
    known = set(named)
    urls: dict[str, None] = {}
    read: list[ReadSitemap] = []
    others, room, more = 0, SITEMAP_BYTES, False
    while left and len(read) < SITEMAPS and room > 0 and clock() < deadline:
        url, is_listed = left.popleft()
        target = _target(url)
        if target is None:
            read.append(ReadSitemap(url, ReadOutcome.FAILED, detail="It has no URL that can be fetched."))
            continue
        page = await reader.read(target, ReadBounds(room, origin.port, caller, deadline))
        if page.outcome is not ReadOutcome.READ:
            read.append(ReadSitemap(url, page.outcome, detail=page.detail))
            continue
        room -= len(page.body)
        text = SitemapText(page.body, origin.key, target.origin.key, URLS - len(urls), page.truncated)
        found = await parse(text)
        if found.is_index and is_listed:
            found = Sitemap([], wrong="It is an index that another index lists.")
        outcome = ReadOutcome.FAILED if found.wrong else ReadOutcome.READ
        read.append(ReadSitemap(url, outcome, len(found.urls), found.is_index, found.wrong))
        others, more = others + found.others, more or found.more
        if found.is_index:
            left.extend((it, True) for it in found.urls if it not in known)
            known.update(found.urls)
        else:
            urls.update(dict.fromkeys(found.urls))
    return SitemapUrls(list(urls), read, others, len(left), not (left or more))


def _target(url: str) -> Target | None:
    try:
        return read_target(url)
    except BadUrl:
        return None
