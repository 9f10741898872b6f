"""The meta tags of an HTML page."""

import re
from collections.abc import Iterator
from html import unescape
from itertools import islice

MARKUP_PER_STEP = 256
"""Tags and comments that one step reads."""

ATTRIBUTES = 64
"""Attributes of a meta tag that are read; pages write some five."""

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


class MetaReader:
    """Collects (name, content) of every meta tag that has both, in the body of the page too (spec H9).

    It splits the page into tags, comments and the text of scripts and the like, as browsers do (WHATWG HTML 13.2.5). It
    does not keep track of open elements, so it reads each character once, however the tags are nested.

    `size` counts the characters of all names and contents. Those beyond `limit` are counted, but not kept.
    """

    def __init__(self, limit: int) -> None:
        self.metas: list[tuple[str, str]] = []
        self.size = 0
        self._limit = limit

    def read(self, html: str) -> Iterator[None]:
        """Read the page, MARKUP_PER_STEP tags and comments per step."""
        for number, (name, begin, end) in enumerate(_markup(html), 1):
            if name == "meta":
                self._add(html, begin, end)
            if number % MARKUP_PER_STEP == 0:
                yield
        yield

    def _add(self, html: str, begin: int, end: int) -> None:
        """Add the meta tag with these attributes, if it has a name and a content."""
        values: dict[str, str] = {}
        for attribute in islice(_ATTRIBUTE.finditer(html, begin, end), ATTRIBUTES):
            name, value = _name_and_value(attribute[0])
            values.setdefault(name, value)  # of two with the same name, the first counts
        if "name" in values and "content" in values:
            name, content = values["name"], values["content"]
            self.size += len(name) + len(content)
            if self.size <= self._limit:
                self.metas.append((_with_characters(name), _with_characters(content)))


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
