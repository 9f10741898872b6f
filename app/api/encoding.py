"""The text of an answer, put together from pieces that were rendered before, for answers like it.

What an answer looks like is for `wire` to say, and nothing here repeats it: a piece is cut out of the text of a whole
answer that `wire` rendered, and kept under all that it depends on. Answers that rest on the same revision of a file
differ in the file's age and their URL; those with the same agent and the same rule, in nothing else. Where something
beside the file had a say, an answer has no revision, and is rendered whole.
"""

import re
from collections.abc import Hashable
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from math import inf
from typing import NamedTuple

from app.api.serialize import answer_out, instant
from app.cache.byte_lru import ByteLRU
from app.evaluate import Decision
from app.robots.verdict import Permission

PIECES_BYTES = 16 * 1024 * 1024
"""What the pieces of one process take at most, unless told otherwise."""

_OVERHEAD = 500  # octets that a piece takes beside its text: its key, the objects, the place in the cache

_FILE = ',"sitemaps":['
_AGES = re.compile(r'"recheck_at":"[^"]*","age":[0-9]+')


class Rendered(NamedTuple):
    """An answer as JSON, and the Unix time at which its rate or visit time will be another; inf for never."""

    text: str
    until: float


class _Row(NamedTuple):
    """All between the URL and the facts of the file, true of instants from `since` up to `until`, Unix seconds.

    `by_usage`: what is said of the use of the page depends on its path, and the rows of each are kept apart.
    """

    text: str
    since: float
    until: float
    by_usage: bool = False


class _File(NamedTuple):
    """The sitemaps and the facts of the file, without its recheck and its age."""

    before: str
    after: str


class Renderer:
    """Renders answers, and keeps at most `limit` bytes of pieces."""

    def __init__(self, limit: int = PIECES_BYTES) -> None:
        self._rows: ByteLRU[Hashable, _Row] = ByteLRU(limit // 2)
        self._files: ByteLRU[Hashable, _File] = ByteLRU(limit // 2)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the pieces."""
        return self._rows.usage[0] + self._files.usage[0], self._rows.usage[1] + self._files.usage[1]

    def render(self, answer: Decision) -> Rendered:
        """The answer to `GET /v1/allowed`, without an explanation."""
        question, verdict, held, now, revision = (
            answer.question,
            answer.verdict,
            answer.cached,
            answer.now,
            answer.revision,
        )
        decision, reason, rule, selection = verdict
        freshness = held.freshness
        if revision is None or freshness is None or decision is Permission.DEFER:
            return Rendered(plain(answer), _until(answer))
        dialect, agent = question.dialect.name, question.agent.token
        line, token = rule.directive[0] if rule else 0, selection.token if selection else ""
        row_key = (revision, dialect, agent, reason, line, token)
        row = self._rows.get(row_key)
        if row is not None and row.by_usage:
            row = self._rows.get((row_key, _usage(answer)))
        if row is not None and row.until != inf:
            at = now if question.at is None else question.at.timestamp()
            row = row if row.since <= at < row.until else None
        file = self._files.get((revision, held.source, freshness.stale))
        if row is None or file is None:
            row, file = self._render_whole(answer, row_key)
        url = quoted(question.target.url)
        ages = f'"recheck_at":"{_instant(int(freshness.recheck_at))}","age":{int(freshness.age)}'
        return Rendered(f'{{"url":{url}{row.text}{file.before}{ages}{file.after}', row.until)

    def _render_whole(self, answer: Decision, row_key: Hashable) -> tuple[_Row, _File]:
        row, file = _cut(answer, _until(answer))
        if row.by_usage:
            self._rows.put(row_key, _Row("", -inf, inf, by_usage=True), _OVERHEAD)
            row_key = (row_key, _usage(answer))
        self._rows.put(row_key, row, len(row.text) + _OVERHEAD)
        held, freshness = answer.cached, answer.cached.freshness
        stale = freshness is not None and freshness.stale
        self._files.put((answer.revision, held.source, stale), file, len(file.before) + len(file.after) + _OVERHEAD)
        return row, file


def plain(answer: Decision) -> str:
    """The whole answer as `wire` renders it."""
    return answer_out(answer, explained=False).model_dump_json(exclude={"explanation"})


_instant = lru_cache(4096)(instant)


def _usage(answer: Decision) -> Hashable:
    usage = answer.usage
    if usage is None:
        return None
    return tuple(usage.content_usage.items()), tuple(usage.content_signal.items()), usage.ai_training


def _until(answer: Decision) -> float:
    change = answer.valid_until
    return inf if change is None else change.timestamp()


def _cut(answer: Decision, until: float) -> tuple[_Row, _File]:
    text = plain(answer)
    begins = len(f'{{"url":{quoted(answer.question.target.url)}')
    # Neither can stand in a value: there, quotation marks are escaped, and what a file names is never a list.
    ends = text.index(_FILE, begins)
    ages = _AGES.search(text, ends)
    if ages is None:
        raise ValueError(f"an answer that rests on a file has no age: {text[:500]}")
    since = -inf if until == inf else answer.at.timestamp()
    terms = answer.terms
    by_usage = terms is not None and terms.usage is not None
    return _Row(text[begins:ends], since, until, by_usage), _File(text[ends : ages.start()], text[ages.end() :])
