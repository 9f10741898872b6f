"""Read the sitemaps that a robots.txt names, and those that their indexes list, within bounds.

Only what robots.txt names is read, so the service fetches no URL of the caller's choice. Sitemaps are read one after
another, each by a permit of its own.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from app.api.sites.reader import ReadBounds, ReadOutcome, SiteReader
from app.api.sites.sitemap import URLS, Sitemap, SitemapText, target_of
from robots_core.origin import Origin

SITEMAPS: Final = 10
"""Sitemaps that are read for one answer, indexes among them."""

SITEMAP_BYTES: Final = 10_000_000
"""Decoded bytes that are read for one answer."""

SITEMAP_SECONDS: Final = 20.0
"""Seconds after which no further sitemap is begun."""


class SitemapOut(BaseModel):
    """What became of one sitemap."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    url: str
    outcome: ReadOutcome = Field(
        description="disallowed: robots.txt closes it to the service's own crawler, by the name of USER_AGENT; "
        "deferred: robots.txt could not be fetched, or the pace leaves no slot in time."
    )
    urls: int = Field(0, description="How many URLs of the origin it lists, or sitemaps if it is an index.")
    is_index: bool = False
    detail: str = Field("", description="Why it was not read, in a sentence; else empty.")


class SitemapUrls(BaseModel):
    """The URLs of the origin, each once, and what became of each sitemap."""

    urls: list[str]
    sitemaps: list[SitemapOut]
    other_origins: int = Field(
        description="Listed URLs of other origins, which are left out: other files decide about them."
    )
    unread: int = Field(
        description=f"Sitemaps that were not asked for: at most {SITEMAPS} are, with {SITEMAP_BYTES} bytes in all, and "
        f"none is begun after {SITEMAP_SECONDS:g} s."
    )
    complete: bool = Field(
        description=f"Whether robots.txt could be read, and no bound left anything out: of the URLs, {URLS} fit."
    )


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
    read: list[SitemapOut] = []
    others, room, more = 0, SITEMAP_BYTES, False
    while left and len(read) < SITEMAPS and room > 0 and clock() < deadline:
        url, is_listed = left.popleft()
        target = target_of(url)
        if target is None:
            read.append(SitemapOut(url=url, outcome=ReadOutcome.FAILED, detail="It has no URL that can be fetched."))
            continue
        page = await reader.read(target, ReadBounds(room, origin.port, caller, deadline))
        if page.outcome is not ReadOutcome.READ:
            read.append(SitemapOut(url=url, outcome=page.outcome, detail=page.detail))
            continue
        room -= len(page.body)
        text = SitemapText(page.body, origin.key, target.origin.key, URLS - len(urls), page.truncated)
        found = await parse(text)
        if found.is_index and is_listed:
            found = Sitemap([], wrong="It is an index that another index lists.")
        outcome = ReadOutcome.FAILED if found.wrong else ReadOutcome.READ
        size, is_index = len(found.urls), found.is_index
        read.append(SitemapOut(url=url, outcome=outcome, urls=size, is_index=is_index, detail=found.wrong))
        others, more = others + found.others, more or found.more
        if found.is_index:
            left.extend((it, True) for it in found.urls if it not in known)
            known.update(found.urls)
        else:
            urls.update(dict.fromkeys(found.urls))
    complete = not (left or more)
    return SitemapUrls(urls=list(urls), sitemaps=read, other_origins=others, unread=len(left), complete=complete)
