"""Read one sitemap (sitemaps.org): XML, an index of sitemaps, or a list of URLs. Pure; the input is not trusted."""

from functools import reduce
from typing import Final, NamedTuple
from urllib.parse import urljoin
from xml.parsers.expat import ExpatError, ParserCreate, errors

import msgspec

from robots_core.origin import URL_LIMIT, Target, read_target

URLS: Final = 50_000
"""URLs of the largest sitemap (sitemaps.org)."""

DEEPEST: Final = 10
"""Elements that may be open at once; a sitemap with pictures has five."""

_ROOTS: Final = {"urlset": "url", "sitemapindex": "sitemap"}
"""The elements that a sitemap may be, and those in which each of its URLs is."""

_BYTE_ORDER_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class Sitemap(NamedTuple):
    """What a sitemap lists: pages of one origin, or with `is_index` sitemaps of one.

    `others` is how many URLs of other origins it lists, and `more` whether not all of it was read. `wrong` says in a
    sentence why it is not a sitemap.
    """

    urls: list[str]
    is_index: bool = False
    others: int = 0
    more: bool = False
    wrong: str = ""


class _NoSitemap(Exception):
    """The XML is not a sitemap; the text says why, in a sentence."""


class SitemapText(NamedTuple):
    """The content of a sitemap, the first part of it if it is `truncated`.

    Of its URLs, those of the origin `pages_of` are taken, or if it is an index, of `sitemaps_of`; `room` at most. Both
    are keys.
    """

    content: bytes
    pages_of: str
    sitemaps_of: str
    room: int
    truncated: bool = False


def sitemap_json(text: SitemapText) -> bytes:
    """The Sitemap as JSON, for a helper process."""
    return msgspec.json.encode(read_sitemap(text))


def sitemap_of(found: bytes) -> Sitemap:
    """The Sitemap that `sitemap_json` wrote."""
    return msgspec.json.decode(found, type=Sitemap)


def read_sitemap(text: SitemapText) -> Sitemap:
    """Read a sitemap, whatever its content is."""
    read = _from_xml if _is_xml(text.content) else _from_lines
    try:
        is_index, written = read(text.content, text.truncated)
    except _NoSitemap as error:
        return Sitemap([], wrong=str(error))
    origin = text.sitemaps_of if is_index else text.pages_of
    urls: dict[str, None] = {}
    others = 0
    for url in written:
        target = target_of(url)
        if target is None or target.origin.key != origin:
            others += 1
        elif len(urls) < text.room:
            urls[url] = None
        elif url not in urls:
            return Sitemap(list(urls), is_index, others, more=True)
    return Sitemap(list(urls), is_index, others, text.truncated)


def target_of(*urls: str) -> Target | None:
    """The target of the last URL, relative to those before it; None if it has none that can be fetched."""
    try:
        return read_target(reduce(urljoin, urls))
    except ValueError:  # BadUrl, or urljoin's own for brackets in the wrong places
        return None


def _is_xml(content: bytes) -> bool:
    return (
        content.startswith(_BYTE_ORDER_MARKS[1:])
        or content[:1024].removeprefix(_BYTE_ORDER_MARKS[0]).lstrip()[:1] == b"<"
    )


def _from_lines(content: bytes, truncated: bool) -> tuple[bool, list[str]]:
    lines = content.removeprefix(_BYTE_ORDER_MARKS[0]).decode(errors="replace").splitlines()
    if truncated:
        lines = lines[:-1]
    urls = [url for line in lines if (url := line.strip())]
    if not urls or not urls[0].lower().startswith(("http://", "https://")):
        raise _NoSitemap("It is neither XML nor a list of URLs.")
    return False, urls


def _from_xml(content: bytes, truncated: bool) -> tuple[bool, list[str]]:
    """Whether it is an index, and its URLs."""
    reader = _XmlReader()
    try:
        reader.parser.Parse(content, not truncated)
    except ExpatError as error:
        raise _NoSitemap(f"Its XML is damaged in line {error.lineno}: {errors.messages[error.code]}.") from None
    except (LookupError, ValueError):  # of an encoding that Python does not have, or not as a table of 256 characters
        raise _NoSitemap("It is in an encoding that cannot be read.") from None
    if reader.root is None:
        raise _NoSitemap("It is empty.")
    return reader.root == "sitemapindex", reader.urls


class _XmlReader:
    """Collects the URLs of a sitemap, and stops at what no sitemap has.

    Document types are refused, since only they can declare entities or load other files.
    """

    def __init__(self) -> None:
        self.root: str | None = None
        self.urls: list[str] = []
        self._open: list[str] = []
        self._words: list[str] | None = None
        self._size = 0
        self.parser = parser = ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text

    def _doctype(self, name: str, *_: object) -> None:
        what = "It is a web page" if name.lower() == "html" else "It has a document type, as no sitemap has"
        raise _NoSitemap(f"{what}.")

    def _start(self, written: str, _: object) -> None:
        prefix, _, name = written.rpartition(":")
        if self.root is None:
            if name not in _ROOTS:
                raise _NoSitemap(f"It is no sitemap: its root element is {written[:50]!r}.")
            self.root = name
            self._path = [written, *(f"{prefix}:{it}" if prefix else it for it in (_ROOTS[name], "loc"))]
        self._open.append(written)
        if len(self._open) > DEEPEST:
            raise _NoSitemap(f"More than {DEEPEST} of its elements are in each other.")
        if self._open == self._path:
            self._words, self._size = [], 0

    def _text(self, text: str) -> None:
        if self._words is not None:
            self._size += len(text)
            if self._size <= URL_LIMIT:
                self._words.append(text)

    def _end(self, _: str) -> None:
        if self._words is not None and self._open == self._path:
            url = "%20".join("".join(self._words).split())
            if url and self._size <= URL_LIMIT:
                self.urls.append(url)
            self._words = None
        self._open.pop()
