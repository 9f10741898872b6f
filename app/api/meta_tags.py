"""The meta tags of an HTML page."""

from collections.abc import Mapping
from typing import Any, cast

from lxml import etree


def metas_in(html: str) -> list[tuple[str, str]]:
    """(name, content) of every meta tag that has both, wherever it stands: the body is read too (spec H9).

    No tree is built: a page of nothing but open tags would be as deep as it is long.
    """
    collector = _MetaCollector()
    parser: Any = etree.HTMLParser(target=cast("Any", collector), encoding="utf-8", no_network=True)
    parser.feed(html.encode("utf-8", "replace"))
    parser.close()
    return collector.metas


class _MetaCollector:
    """What the parser tells of a page as it reads it."""

    def __init__(self) -> None:
        self.metas: list[tuple[str, str]] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "meta" and "name" in attributes and "content" in attributes:
            self.metas.append((attributes["name"], attributes["content"]))

    def close(self) -> None:
        """The page has ended; what was collected stays."""
