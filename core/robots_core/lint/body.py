"""Checks of the file as a whole: media type, encoding and limits."""

from collections.abc import Iterator
from typing import Final

from robots_core.lint.advice import Warned, quote
from robots_core.lint.checked_file import CheckedFile
from robots_core.robots.access import BODY_LIMIT, is_plain_text
from robots_core.robots.lines import LINE_LIMIT

_GZIP: Final = b"\x1f\x8b"
_HEAD: Final = 200
_WIDE: Final = 0.4
"""The share of zero bytes above which a text is one of two bytes a character."""

_HALF: Final = LINE_LIMIT // 2


def bom(file: CheckedFile) -> Iterator[Warned]:
    """A byte order mark, or part of one."""
    if file.scan.bom:
        yield Warned(1, "The file starts with a byte order mark. Save it as UTF-8 without one.")


def file_truncated(file: CheckedFile) -> Iterator[Warned]:
    """A file above the limit."""
    if file.scan.truncated:
        message = f"Crawlers stop reading here: only the first {BODY_LIMIT:,} bytes of a file count. Make it shorter."
        yield Warned(max(1, file.scan.lines.count), message)


def html_body(file: CheckedFile) -> Iterator[Warned]:
    """An HTML page instead of a robots.txt."""
    if file.robots.is_html:
        message = "This is an HTML page, not a robots.txt file. If the site has none, answer with status 404."
        yield Warned(1, message)


def not_text_plain(file: CheckedFile) -> Iterator[Warned]:
    """A file sent with another media type than text/plain."""
    if file.content_type is not None and not is_plain_text(file.content_type):
        sent = quote(file.content_type) if file.content_type else "without a Content-Type"
        yield Warned(1, f"The file is sent as {sent}. Send it as text/plain; charset=utf-8.")


def non_utf8(file: CheckedFile) -> Iterator[Warned]:
    """Bytes that are not UTF-8, at their first line."""
    if file.robots.is_utf8:
        return
    body, line = file.scan.lines.body, 1
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line = len(body[: error.start + 1].splitlines())
    message = "This file is not in UTF-8. Save it as UTF-8, or write the characters as percent-escapes."
    yield Warned(line, message)


def not_text(file: CheckedFile) -> Iterator[Warned]:
    """Compressed bytes, or UTF-16 without a byte order mark, none of which is read."""
    if is_not_text(file):
        if file.scan.lines.body.startswith(_GZIP):
            message = "The file is compressed by gzip. Send it with 'Content-Encoding: gzip', or as plain text."
        else:
            message = "The file looks like UTF-16 without a byte order mark, which no crawler reads. Save it as UTF-8."
        yield Warned(1, message)


def is_not_text(file: CheckedFile) -> bool:
    """Whether the body is of another form, so that nothing can be said of its lines."""
    head = file.scan.lines.body[:_HEAD]
    return head.startswith(_GZIP) or (len(head) > 3 and head.count(0) / len(head) > _WIDE)


def line_truncated(file: CheckedFile) -> Iterator[Warned]:
    """Lines above the limit."""
    body = file.scan.lines.body
    # A line above the limit fills at least one of these blocks, which is rare.
    blocks = (body[start : start + _HALF] for start in range(0, len(body), _HALF))
    if all(b"\n" in block or b"\r" in block for block in blocks):
        return
    for number in [number for number, line in enumerate(body.splitlines(), 1) if len(line) > LINE_LIMIT]:
        yield Warned(number, f"Only the first {LINE_LIMIT:,} bytes of this line are read. Make it shorter.")
