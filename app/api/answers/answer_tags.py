"""Entity tags of answers (RFC 9110 8.8.3), from what an answer depends on: it need not be decided or encoded for them.

They are weak: `robots.age`, `robots.source` and `robots.recheck_at` may differ between two answers with one tag, so
their bytes differ although their meaning does not. (Under a recheck model that counts visits, each question moves the
recheck.) All processes with the same release, settings and files compute the same tag.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple
from zlib import crc32

from app import __version__
from app.cache.freshness import Snapshot, State
from app.decisions.evaluate import CachedFile, Question
from app.edge.facts import EdgeTable
from app.overrides.table import Delay, Matching, Override, Replace, Table
from robots_core.agents.directory import AgentDirectory
from robots_core.content import digest
from robots_core.robots.access import Successful, Unreachable
from robots_core.robots.lines import Directive, Key, codes_of
from robots_core.robots.rates import DAY_MINUTES, Window, read_request_rate, read_visit_time
from robots_core.robots.robots_txt import RobotsTxt

TAGGED_FILES: Final = 4096
"""Files whose part of a tag is in memory, some 500 bytes each."""

TIMED_LINES: Final = 1000
"""Lines about the time of day that are read for a tag; with more, the tag changes with every minute."""

_WEAK: Final = b"W/"
_TIMED: Final = codes_of({Key.REQUEST_RATE, Key.VISIT_TIME})
_MINUTES: Final = tuple(range(DAY_MINUTES))


class AnswerTag(NamedTuple):
    """The value of ETag, and when the answer may change though its file does not (Unix seconds, None: never)."""

    field: bytes
    until: float | None

    def matches(self, if_none_match: bytes) -> bool:
        """Whether the value of an If-None-Match names this tag, or any (RFC 9110 13.1.2, by weak comparison)."""
        # The opaque part has neither quote nor comma, so that with its quotes it is found only as a member of the list.
        return self.field.removeprefix(_WEAK) in if_none_match or if_none_match.strip() == b"*"


class _FilePart(NamedTuple):
    """The beginning of the tags of answers by a file, and the minutes of the UTC day at which answers may change."""

    known: AgentDirectory
    beginning: bytes
    minutes: tuple[int, ...]


class AnswerTags:
    """Computes the tags of answers. `forbidden`: whether a 401 or 403 closes a site."""

    def __init__(
        self,
        known: Callable[[], AgentDirectory],
        overrides: Callable[[], Table],
        edge: EdgeTable,
        *,
        forbidden: bool,
    ) -> None:
        self._known = known
        self._overrides = overrides
        self._edge = edge
        self._configuration = f"{__version__} {forbidden}"
        self._parts: dict[int, _FilePart] = {}

    def of_answer(self, asked: bytes, question: Question, file: CachedFile, now: float) -> AnswerTag | None:
        """The tag of the answer by this file at `now` (Unix seconds); `asked` is the query string of the question.

        None for an answer that must not be stored, one by an operator's file, and one without any file.
        """
        part = self._part(file)
        if part is None:
            return None
        target, agent = question.target, question.agent
        more = _stale(file)
        until = None
        if question.policy is not None:
            more.append(repr(question.policy))
        if part.minutes and question.at is None:
            number, until = _period(part.minutes, now)
            more.append(str(number))
        table = self._overrides()
        matching = table.find(target.origin, agent, now) if table.by_id else None
        if matching is not None:
            if matching.deciding is not None and isinstance(matching.deciding.action, Replace):
                return None  # the windows of that file would count
            for override in _overrides_in(matching):
                more.append(_text_of(override))
                if override.expires_at is not None:
                    until = override.expires_at if until is None else min(until, override.expires_at)
        fact = self._edge.find(target.origin.key, agent.token, now) if self._edge else None
        if fact is not None:
            more.append(repr(fact))
        return AnswerTag(_field(part, asked, more), until)

    def of_file(self, asked: bytes, file: CachedFile) -> AnswerTag | None:
        """The tag of an answer about the file itself; None if it must not be stored."""
        part = self._part(file)
        return None if part is None else AnswerTag(_field(part, asked, _stale(file)), None)

    def _part(self, file: CachedFile) -> _FilePart | None:
        cached, robots, revision, _ = file
        snapshot, freshness = cached.snapshot, cached.freshness
        if revision is None or snapshot is None or freshness is None or freshness.state is not State.FRESH:
            return None
        known = self._known()
        part = self._parts.get(revision)
        if part is not None and part.known is known:
            return part
        if isinstance(snapshot.access, Unreachable):
            return None  # there is no file: the answer is a defer, or an operator's
        facts = (self._configuration, known.digest, _facts_of(snapshot))
        minutes = () if robots is None else change_minutes(robots)
        part = _FilePart(known, b'%s"%s-' % (_WEAK, _hash(repr(facts))), minutes)
        if len(self._parts) >= TAGGED_FILES:
            self._parts.clear()
        self._parts[revision] = part
        return part


def change_minutes(robots: RobotsTxt) -> tuple[int, ...]:
    """The minutes of the UTC day at which any rate or visit time of the file may change; none if none does."""
    positions = robots.positions(_TIMED)
    if len(positions) > TIMED_LINES:
        return _MINUTES
    windows = filter(None, map(_window_of, robots.scan.directives(positions)))
    minutes = {minute % DAY_MINUTES for window in windows for minute in (window.start, window.end)}
    return tuple(sorted(minutes))


def _window_of(line: Directive) -> Window | None:
    if line.key is Key.REQUEST_RATE:
        rate = read_request_rate(line.text, line.line).value
        return None if rate is None else rate.window
    time = read_visit_time(line.text, line.line).value
    return None if time is None else time.window


def _period(minutes: tuple[int, ...], now: float) -> tuple[int, float]:
    """The number of the period between two of these minutes that `now` is in, and when it ends (Unix seconds)."""
    day, minute = divmod(int(now // 60), DAY_MINUTES)
    passed = bisect_right(minutes, minute)
    ends = minutes[passed] if passed < len(minutes) else DAY_MINUTES + minutes[0]
    return day * len(minutes) + passed, (day * DAY_MINUTES + ends) * 60.0


def _stale(file: CachedFile) -> list[str]:
    return ["stale"] if file.cached.freshness is not None and file.cached.freshness.stale else []


def _field(part: _FilePart, asked: bytes, more: Sequence[str]) -> bytes:
    # The question is that of the URL, which a tag belongs to: the checksum only shows tags that were mixed up.
    if more:
        return b'%s%x-%s"' % (part.beginning, crc32(asked), _hash(repr(more)))
    return b'%s%x"' % (part.beginning, crc32(asked))


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest().encode("ascii")


def _facts_of(snapshot: Snapshot) -> tuple[object, ...]:
    """What answers say about a fetch."""
    access = snapshot.access
    found = (access.status, access.content_type, digest(access)) if isinstance(access, Successful) else access
    return (found, snapshot.fetched_at, snapshot.final_url, snapshot.failing)


def _overrides_in(matching: Matching) -> Iterator[Override]:
    found = (matching.deciding, matching.delaying, matching.shadow_deciding, matching.shadow_delaying)
    return (override for override in found if override is not None)


def _text_of(override: Override) -> str:
    """All of an override but the file that it brings."""
    action = override.action
    seconds = action.seconds if isinstance(action, Delay) else None
    agents, expires_at = override.agents, override.expires_at
    text = (override.id, override.scope_text, agents, override.action.name, override.reason, expires_at, seconds)
    return repr((*text, override.shadow))
