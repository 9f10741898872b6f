"""The meta tags of an HTML page, and the style sheets and scripts that it loads."""

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from itertools import islice
from typing import NamedTuple

from robots_core.robots.indexing import FIELD_NAME, META_ATTRIBUTES

ATTRIBUTES = 64
"""Attributes of a tag that are read; pages write some five."""

_LOADING = frozenset({"base", "link", "script"})

_SPACE = "\t\n\f\r "
# A quote without its partner takes the rest of the page, as in browsers.
_ATTRIBUTE_SOURCE = rf"""[^{_SPACE}/>][^{_SPACE}/>=]*+
    (?:[{_SPACE}]*+=[{_SPACE}]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^{_SPACE}>"'][^{_SPACE}>]*+|(?=>)))?+"""
_ATTRIBUTE = re.compile(_ATTRIBUTE_SOURCE, re.VERBOSE)
_TAG = re.compile(rf"<(/?+[A-Za-z][^{_SPACE}/>]*+)(?:[{_SPACE}/]++|{_ATTRIBUTE_SOURCE})*+>", re.VERBOSE)
_MARKUP = re.compile("<(?:(/?[A-Za-z])|[!?/])")
_EMPTY_COMMENT = re.compile("<!---?>")
_COMMENT_END = re.compile("--!?>")
_TEXT_END = re.compile(
    rf"</(iframe|noembed|noframes|style|textarea|title|xmp)(?=[{_SPACE}/>])", re.ASCII | re.IGNORECASE
)
_SCRIPT_MARK = re.compile(rf"<!--(?:-?>)?|-->|</?script(?=[{_SPACE}/>])", re.ASCII | re.IGNORECASE)

_TEXT_ELEMENTS = frozenset({"iframe", "noembed", "noframes", "style", "textarea", "title", "xmp"})
"""Elements whose content is text, whatever it looks like; `script` and `plaintext` have rules of their own."""


LOADS, LOAD_CHARS = 100, 2048
"""Style sheets and scripts of a page that are read, and the characters of the longest URL of one."""


class Metas(NamedTuple):
    """Meta tags, (name, content) each, and the characters of all names and contents.

    `loads` are the URLs of style sheets and scripts as written, relative to `base`, which is relative to the page's.
    """

    size: int
    tags: list[tuple[str, str]]
    loads: list[str]
    base: str


def read_metas(html: str, limit: int) -> Metas:
    """Every meta tag of a page that has a name and a content, in the body too (spec H9).

    The page is split into tags, comments and the text of scripts and the like, as browsers do (WHATWG HTML 13.2.5).
    Open elements are not kept track of, so each character is read once, however the tags are nested. If the tags have
    more than `limit` characters, the rest is not read.
    """
    size, base = 0, None
    tags: list[tuple[str, str]] = []
    loads: list[str] = []
    for name, begin, end in _markup(html):
        if name in _LOADING:
            url = _loaded(name, _attributes(html, begin, end))
            if name == "base":
                base = url if base is None else base
            elif url and len(url) <= LOAD_CHARS and len(loads) < LOADS:
                loads.append(url)
        found = _meta(html, begin, end) if name == "meta" else None
        if found is not None:
            size += len(found[0]) + len(found[1])
            if size > limit:
                break
            tags.append((_with_characters(found[0]), _with_characters(found[1])))
    return Metas(size, tags, loads, base or "")


def metas_json(html: bytes, limit: int) -> bytes:
    """Metas as an array, for a helper process; the page is in UTF-8."""
    return json.dumps(read_metas(html.decode(), limit), ensure_ascii=False).encode()


def _meta(html: str, begin: int, end: int) -> tuple[str, str] | None:
    """The name and the content of the meta tag with these attributes, if it has both.

    A name of crawlers in another attribute, where none reads it, is that attribute: `property="robots"`.
    """
    values = _attributes(html, begin, end)
    if "content" not in values:
        return None
    if "name" in values:
        return values["name"], values["content"]
    for other in META_ATTRIBUTES:
        name = values.get(other[:-1], "").strip().lower()
        if name in ("robots", FIELD_NAME) or name.endswith("bot"):
            return f'{other}"{name}"', values["content"]
    return None


def _loaded(name: str, values: Mapping[str, str]) -> str | None:
    """The URL of a style sheet, a script or a base, if the element with these attributes has one."""
    if name == "link" and "stylesheet" not in values.get("rel", "").lower().split():
        return None
    url = values.get("src" if name == "script" else "href")
    return None if url is None else _with_characters(url).strip()


def _attributes(html: str, begin: int, end: int) -> Mapping[str, str]:
    """The attributes of a tag by their lower-case names; of two with the same name, the first counts."""
    values: dict[str, str] = {}
    for attribute in islice(_ATTRIBUTE.finditer(html, begin, end), ATTRIBUTES):
        name, value = _name_and_value(attribute[0])
        values.setdefault(name, value)
    return values


def _markup(html: str) -> Iterator[tuple[str, int, int]]:
    """Every start tag: its lower-case name, and where its attributes begin and end. Other markup has another name."""
    position = 0
    while found := _MARKUP.search(html, position):
        begin = found.start()
        if found[1] is None:
            name, attributes = "!", begin
            position = _comment_end(html, begin)
        else:
            tag = _TAG.match(html, begin)
            if tag is None:  # the page ends within it
                return
            name, attributes = tag[1].lower(), tag.end(1)
            position = tag.end()
        yield name, attributes, position
        position = _text_end(html, name, position)


def _comment_end(html: str, begin: int) -> int:
    """Where the comment ends; a declaration, `<?` and `</` before anything but a letter are comments, too."""
    if html.startswith("<!--", begin):
        comment = _EMPTY_COMMENT.match(html, begin) or _COMMENT_END.search(html, begin + 4)
        return len(html) if comment is None else comment.end()
    end = html.find(">", begin)
    return len(html) if end < 0 else end + 1


def _text_end(html: str, name: str, begin: int) -> int:
    """Where the text that follows the tag `name` ends: `begin`, unless all content of the element is text."""
    if name == "script":
        return _script_end(html, begin)
    if name == "plaintext":
        return len(html)
    if name not in _TEXT_ELEMENTS:
        return begin
    ends = (end.start() for end in _TEXT_END.finditer(html, begin) if end[1].lower() == name)
    return next(ends, len(html))


def _script_end(html: str, begin: int) -> int:
    """Where the script's end tag begins. After `<!--`, a `<script` within the script takes the next end tag."""
    escaped = nested = False
    for mark in _SCRIPT_MARK.finditer(html, begin):
        text = mark[0].lower()
        if text == "<!--":
            escaped = True
        elif text.endswith("-->") or text == "<!-->":
            escaped = nested = False
        elif text == "<script":
            nested = escaped
        elif nested:
            nested = False
        else:
            return mark.start()
    return len(html)


def _name_and_value(attribute: str) -> tuple[str, str]:
    """The lower-case name and the value of an attribute, without quotes."""
    name, _, value = attribute[1:].partition("=")
    value = value.lstrip(_SPACE)
    if value.startswith(("'", '"')):
        value = value[1:-1]
    return (attribute[0] + name).rstrip(_SPACE).lower(), value


def _with_characters(value: str) -> str:
    """The value with characters in place of references such as `&amp;`."""
    try:
        return unescape(value)
    except ValueError:  # a number of more digits than int() reads
        return value
