"""The meta tags of an HTML page."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lxml import etree

CHUNK = 16 * 1024
"""Characters parsed in one step."""


class MetaReader:
    """Collects (name, content) of every meta tag that has both, in the body of the page too (spec H9).

    It builds no tree, which a page of unclosed tags would make as deep as the page is long.
    """

    def __init__(self) -> None:
        self.metas: list[tuple[str, str]] = []
        self.size = 0  # characters of all of them

    def read(self, html: str) -> Iterator[None]:
        """Parse the page, one chunk per step."""
        parser: Any = etree.HTMLParser(target=cast("Any", self), encoding="utf-8", no_network=True)
        for begin in range(0, len(html), CHUNK):
            parser.feed(html[begin : begin + CHUNK].encode("utf-8", "replace"))
            yield
        if html:
            parser.close()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle a start tag; called by the parser."""
        if tag == "meta" and "name" in attributes and "content" in attributes:
            name, content = attributes["name"], attributes["content"]
            self.metas.append((name, content))
            self.size += len(name) + len(content)

    def close(self) -> None:
        """Handle the end of the page; called by the parser."""
