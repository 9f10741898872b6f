"""Rows of a bundle (`/v1/bundle`), without I/O. Answers of the service are not trusted."""

import re
from base64 import b64decode
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from robots_decisions.parsing import instant, json_value, shown
from robots_decisions.permits import ANSWER_TIMEOUT, FETCH_WAIT, Unavailable, encode, not_ours
from robots_decisions.question import Members, without_credentials
from robots_decisions.verdicts import Batch, Unanswered, problem_in

PATH: Final = "/v1/bundle"

ROWS: Final = 50
"""Origins of a request. The service reads 64 ahead of its rows, and so does not wait for a client that sends all of
them before it reads a row."""

_BASE = re.compile(r"[^/?#]*://[^/?#]*")
_ORIGIN = re.compile(r"https?://[!-~]+")
_PROFILE = re.compile(r"[A-Za-z0-9_-]{1,32}")
_OUTCOME = re.compile(r"[0-9a-z_]{1,40}")
_VERSION = re.compile(r"[0-9a-f]{16,64}")


@dataclass(frozen=True)
class BundleRow:
    """The robots.txt of an origin, fetched as the fetch profile says, or why there is none.

    `outcome` is the status, or why there was no response to read, such as `timeout`; `body` is null without a file, and
    `truncated` says that it had more bytes than are read. `version` identifies the bytes; null if the fetch failed.
    `valid_from` is when this content was found first, and `valid_until` when it is due to be fetched again; of the
    past, the last instant at which it is known to have been in use. `url` is what was asked.
    """

    url: str
    origin: str
    profile: str | None
    valid_from: datetime
    valid_until: datetime
    outcome: str
    version: str | None
    truncated: bool
    body: bytes | None = field(repr=False)

    @property
    def key(self) -> str:
        """The origin, and the fetch profile behind `#` if it has one: what a bundle is sorted by."""
        return self.origin if self.profile is None else f"{self.origin}#{self.profile}"


class RowBatch(Batch[str, "BundleRow | Unanswered"]):
    """URLs whose origins' rows are wanted; `members` are those of each question."""

    what, plural = "row for", "origins"
    items = ROWS

    def __init__(self, members: Members, fetch: bool, max_wait: float) -> None:
        super().__init__(PATH, max_wait)
        self._given: dict[str, object] = dict(members)
        if fetch:
            self._given |= {"wait": round(self.timeout * FETCH_WAIT / ANSWER_TIMEOUT, 3), "fetch": True}

    def add(self, asked: str) -> None:
        """Add a URL, of which the service needs no more than the origin."""
        base = _BASE.match(without_credentials(asked))
        self._add_line(asked, encode({"url": asked if base is None else base[0], **self._given}) + b"\n")

    def parse(self, number: int, line: bytes) -> BundleRow | Unanswered:
        """The row, or why there is none."""
        url, message = self.urls[number], json_value(line)
        problem = problem_in(message, url)
        if problem is not None:
            return problem
        row = _row(url, message)
        if row is None:
            raise Unavailable(not_ours(f"a row for {shown(url)} that is not one of a bundle"))
        return row


def _row(url: str, message: object) -> BundleRow | None:
    if not isinstance(message, dict):
        return None
    origin, profile, outcome, version, truncated, encoded = (
        message.get(name) for name in ("origin", "profile", "outcome", "version", "truncated", "body")
    )
    since, until = instant(message.get("valid_from")), instant(message.get("valid_until"))
    texts = [(origin, _ORIGIN), (outcome, _OUTCOME)]
    texts += [(text, pattern) for text, pattern in ((profile, _PROFILE), (version, _VERSION)) if text is not None]
    if not all(isinstance(text, str) and pattern.fullmatch(text) for text, pattern in texts):
        return None
    try:
        body = None if encoded is None else b64decode(encoded, validate=True)
    except (TypeError, ValueError):
        return None
    if since is None or until is None or not isinstance(truncated, bool):
        return None
    return BundleRow(url, str(origin), profile, since, until, str(outcome), version, truncated, body)
