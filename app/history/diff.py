"""What changed from one robots.txt to another: whose rules, which paths they gained or lost, how fast they may go.

All paths cannot be tried, so one path is generated from each pattern of either file, and both files judge them. Costs
are counted alike from either side: the changes from the second file to the first are the same, reversed.
"""

import heapq
import re
from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from app.robots.access import Access
from app.robots.agents import AGENT_LIMIT, STAR, Agent, read_agent
from app.robots.dialects import Dialect
from app.robots.groups import Group, Groups, Selection, tokens_of
from app.robots.judge import judge
from app.robots.lines import Directive, Key, readable
from app.robots.rates import Span, schedule
from app.robots.robots_txt import Reading, RobotsTxt
from app.robots.verdict import Permission, Verdict

AGENTS = 1000
"""How many agents are compared; the first by name, and `*`."""

WORK = 1_000_000
"""What all comparing may cost, in about the microseconds that files made to be slow need for it."""

ROOM = 500_000
"""Characters of all paths that are reported, and as many of all else."""

LONGEST_PATTERN = 2000
"""Characters of the longest pattern that a path is drawn from."""

_AGENT_COST, _RULE_COST, _MEMBER_COST, _PATH_COST, _ROW_ROOM = 50, 10, 1, 20, 100
_BYTES_PER_COST = 100  # of both files, where names are looked for in all that names an agent
# So many stars, or globs, cost one for a short path, and one more for so many characters of it.
_STARS_PER_COST, _STAR_PATH = 256, 64
_GLOBS_PER_COST, _GLOB_PATH = 24, 32
_WILD = frozenset("*?[")
_ESCAPED = {octet: f"%{octet:02X}" for octet in (*range(0x21), *range(0x7F, 0x100))}
_GLOB = re.compile(r"\\(.)|\[[!^].[^]]{0,100}\]|\[(.)[^]]{0,100}\]|([*?])", re.DOTALL)

T = TypeVar("T")
_Steps: TypeAlias = Generator[None, None, T]
"""Work that yields after each step, and returns its result."""


class _Pattern(NamedTuple):
    key: Key
    pattern: str
    version_2: bool


class _Wild(NamedTuple):
    """How many stars patterns of version 1.0 have, and how many of version 2.0 have wildcards."""

    stars: int
    globs: int


class Side(NamedTuple):
    """What one fetch found, and the file where there is one."""

    access: Access
    robots: RobotsTxt | None


class PathChange(NamedTuple):
    """A path about which the two decide differently."""

    path: str
    before: Verdict
    after: Verdict

    @property
    def gained(self) -> bool | None:
        """Whether the path became open, or was that; None where it is so neither before nor after."""
        opened = self.after.permission is Permission.ALLOW
        return opened if opened or self.before.permission is Permission.ALLOW else None


class RatesChange(NamedTuple):
    """The rates of the whole UTC day, where they differ in more than their lines."""

    before: tuple[Span, ...]
    after: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class AgentsChange:
    """What changed for `agents`, all alike: rules of the groups that speak for them, verdicts, rates."""

    agents: tuple[str, ...]
    added: tuple[Directive, ...]
    removed: tuple[Directive, ...]
    paths: tuple[PathChange, ...]
    rates: RatesChange | None


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes, those for `*` first, then by name.

    `truncated`: not everything was compared or reported, since that would have cost too much.
    """

    agents: tuple[AgentsChange, ...]
    sitemaps_added: tuple[str, ...]
    sitemaps_removed: tuple[str, ...]
    truncated: bool


def changes(before: Side, after: Side, dialect: Dialect, *, forbidden: bool = False) -> Changes:
    """What changed from `before` to `after` as `dialect` reads them; `forbidden` as for `judge`.

    Every agent that either file names is looked at, and `*`.
    """
    comparison = Comparison(before, after, dialect, forbidden=forbidden)
    for _ in comparison.steps():
        pass
    return comparison.changes()


def witness(pattern: str, *, glob: bool = False, literal: bool = False) -> str | None:
    """A path that the pattern of a rule matches, None where it matches none: it begins with neither `/` nor `*`.

    `glob`: the pattern is one of version 2.0; `literal`: it has no wildcards (spec E6). Of a negated set any one
    character is taken, be it in it or not.
    """
    if literal:
        text = pattern
    elif glob:
        text = _GLOB.sub(lambda found: found[1] or found[2] or ("" if found[3] == "*" else "x"), pattern)
    else:
        # A star as a letter reads better than nothing would, and "//" means something else to some.
        text = re.sub(r"\*+", "x", pattern.removesuffix("$").strip("*"))
    if pattern.startswith("*") and not literal and not text.startswith("/"):
        text = "/" + text
    return text.translate(_ESCAPED) if text.startswith("/") else None


class _View:
    """One side as the dialect reads it."""

    def __init__(self, side: Side, dialect: Dialect) -> None:
        self._reading: Reading | None = None if side.robots is None else side.robots.reading(dialect)
        self.side = side
        self.sitemaps = () if side.robots is None else side.robots.sitemaps

    @property
    def groups(self) -> Groups | None:
        return None if self._reading is None else self._reading.groups

    def select(self, agent: Agent) -> Selection | None:
        return None if self._reading is None else self._reading.select(agent)

    def rates(self, selection: Selection | None, agent: Agent) -> tuple[Span, ...]:
        if self._reading is None or selection is None:
            return (Span("00:00", "24:00", None),)
        return tuple(schedule(self._reading.terms(selection, agent).rates))


class _Pair(NamedTuple):
    """The groups that speak for an agent on either side."""

    before: tuple[Group, ...]
    after: tuple[Group, ...]


class _Difference(NamedTuple):
    added: tuple[Directive, ...]
    removed: tuple[Directive, ...]
    paths: tuple[PathChange, ...]


class Comparison:
    """Compares two files step by step: run `steps` to its end, then read `changes`."""

    def __init__(self, before: Side, after: Side, dialect: Dialect, *, forbidden: bool = False) -> None:
        self._before = _View(before, dialect)
        self._after = _View(after, dialect)
        self._dialect = dialect
        self._forbidden = forbidden
        self._ordered = dialect.name == "draft1996"  # the first rule that fits decides, and no rule has wildcards
        size = sum(len(side.robots.body) for side in (before, after) if side.robots is not None)
        self._agent_cost = _AGENT_COST + (size // _BYTES_PER_COST if self._ordered else 0)
        self._work = WORK
        self._paths_room = ROOM
        self._room = ROOM
        self._truncated = False
        self._counts: dict[Group, int] = {}
        self._differences: dict[_Pair, _Difference | None] = {}
        self._agents_by_change: dict[tuple[_Pair, RatesChange | None], list[str]] = {}

    def steps(self) -> Iterator[None]:
        """Compare, yielding after each step: one file is grouped, one path is judged, or the like."""
        for agent in (yield from self._agents()):
            if not self._may_cost(self._agent_cost):
                break
            before = self._before.select(agent)
            yield
            after = self._after.select(agent)
            yield
            pair = _Pair(before.groups if before else (), after.groups if after else ())
            if pair not in self._differences:
                self._differences[pair] = yield from self._difference(pair, agent)
            rates = yield from self._rates(pair, before, after, agent)
            self._agents_by_change.setdefault((pair, rates), []).append(agent.token)

    def stop(self) -> None:
        """Compare nothing more: what is left of `steps` is short, and the changes are truncated."""
        self._work = 0
        self._truncated = True

    def changes(self) -> Changes:
        """The changes that were found."""
        found = []
        for (pair, rates), agents in self._agents_by_change.items():
            difference = self._differences[pair]
            if difference is not None or rates is not None:
                found.append(AgentsChange(tuple(agents), *(difference or _Difference((), (), ())), rates))
        old, new = set(self._before.sitemaps), set(self._after.sitemaps)
        moved = {url for url in sorted(old ^ new) if self._has_room(len(url))}
        return Changes(
            agents=tuple(found),
            sitemaps_added=tuple(url for url in self._after.sitemaps if url in moved),
            sitemaps_removed=tuple(url for url in self._before.sitemaps if url in moved),
            truncated=self._truncated,
        )

    def _agents(self) -> _Steps[list[Agent]]:
        names: dict[str, str] = {}
        for view in (self._before, self._after):
            values = [] if (groups := view.groups) is None else groups.scan.lines.values(groups.agent_places)
            yield
            for value, token in zip(values, tokens_of(values, self._dialect.token), strict=True):
                spelt = readable(value[: len(token)])
                if token and len(token) <= AGENT_LIMIT and spelt < names.get(token, "\x7f"):
                    names[token] = spelt
                yield
        names.pop(STAR, None)
        self._truncated = self._truncated or len(names) > AGENTS
        return [read_agent(STAR), *(read_agent(names[token]) for token in sorted(names)[:AGENTS])]

    def _difference(self, pair: _Pair, agent: Agent) -> _Steps[_Difference | None]:
        """None where nothing is known to have changed for those for whom these groups speak."""
        old, new = _Rules(), _Rules()
        for groups, rules in zip(pair, (old, new), strict=True):
            for group in groups:
                places = group.rule_places
                if not self._may_cost(_RULE_COST * len(places)):
                    return None
                rules.begin(group)
                for place in places:
                    rules.add(group.rule(place))
                    yield
        if self._reads_alike(old, new):
            return None
        yield
        moved = set()
        for rule in (yield from _sorted(old.first.keys() ^ new.first.keys())):
            if self._has_room(len(rule[1])):
                moved.add(rule)
        added = tuple(directive for rule, directive in new.first.items() if rule in moved)
        removed = tuple(directive for rule, directive in old.first.items() if rule in moved)
        paths = yield from self._paths(old.patterns, new.patterns, agent)
        found = tuple(sorted(paths, key=lambda change: change.path))
        return _Difference(added, removed, found) if added or removed or found else None

    def _reads_alike(self, old: "_Rules", new: "_Rules") -> bool:
        """Whether every verdict has to be the same, so that no path needs to be tried."""
        if self._before.side.robots is None or self._after.side.robots is None:
            return self._before.side.access == self._after.side.access
        return old.written == new.written

    def _paths(
        self, before: Collection[_Pattern], after: Collection[_Pattern], agent: Agent
    ) -> _Steps[list[PathChange]]:
        drawn_before = yield from self._drawn(before)
        drawn_after = yield from self._drawn(after)
        wild = _Wild(0, 0) if self._ordered else _wild([*before, *after])
        yield
        moved = yield from _sorted(drawn_before ^ drawn_after)
        unmoved = yield from _sorted(drawn_before & drawn_after)
        found: list[PathChange] = []
        for path in ("/", *moved, *unmoved):
            if not self._may_cost(_path_cost(path, wild)):
                break
            old = self._judge(self._before, agent, path)
            yield
            change = PathChange(path, old, self._judge(self._after, agent, path))
            yield
            if change.before.permission is change.after.permission:
                continue
            room = _ROW_ROOM + len(path) + sum(len(it.rule.directive.value) for it in change[1:] if it.rule)
            if room > self._paths_room:
                self._truncated = True
                break
            self._paths_room -= room
            found.append(change)
        return found

    def _drawn(self, patterns: Iterable[_Pattern]) -> _Steps[set[str]]:
        """One path per pattern; of one of version 2.0 another for a dialect that reads it as one of 1.0."""
        paths: set[str | None] = set()
        for _, pattern, version_2 in patterns:
            yield
            if len(pattern) > LONGEST_PATTERN:
                self._truncated = True
                continue
            paths.add(witness(pattern, literal=self._ordered))
            if version_2:
                paths.add(witness(pattern, glob=True))
        return {path for path in paths if path is not None and path != "/"}

    def _judge(self, view: _View, agent: Agent, path: str) -> Verdict:
        access, robots = view.side
        return judge(access, robots, self._dialect, agent, path, forbidden=self._forbidden)

    def _rates(
        self, pair: _Pair, before: Selection | None, after: Selection | None, agent: Agent
    ) -> _Steps[RatesChange | None]:
        count = 0
        for group in (*pair.before, *pair.after):
            count += self._count(group)
            yield
        if not self._may_cost(_MEMBER_COST * count):
            return None
        change = RatesChange(self._before.rates(before, agent), self._after.rates(after, agent))
        if [*map(_pace, change.before)] == [*map(_pace, change.after)]:
            return None
        return change if self._has_room(_ROW_ROOM * (len(change.before) + len(change.after))) else None

    def _count(self, group: Group) -> int:
        """The group and its members, counted once."""
        count = self._counts.get(group)
        if count is None:
            count = self._counts[group] = 1 + len(group.member_places)
        return count

    def _may_cost(self, work: int) -> bool:
        if work > self._work:
            self._truncated = True
            return False
        self._work -= work
        return True

    def _has_room(self, characters: int) -> bool:
        if characters + _ROW_ROOM > self._room:
            self._truncated = True
            return False
        self._room -= characters + _ROW_ROOM
        return True


class _Rules:
    """The rules of some groups: as they are written, the first of each kind, and their patterns."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes] | bool] = []
        self.first: dict[tuple[str, bytes], Directive] = {}
        self.patterns: set[_Pattern] = set()
        self._version_2 = False

    def begin(self, group: Group) -> None:
        """Go on to the rules of `group`."""
        self._version_2 = group.version_2
        self.written.append(self._version_2)

    def add(self, rule: Directive) -> None:
        """Add a rule of that group."""
        written = str(rule.key), rule.value
        self.written.append(written)
        self.first.setdefault(written, rule)
        if rule.value:
            self.patterns.add(_Pattern(rule.key, rule.value.decode("latin-1"), self._version_2))


_RUN = 1000
"""Items that are sorted in one step."""


def _sorted(items: Collection[T]) -> _Steps[list[T]]:
    unsorted, found = list(items), list[T]()
    runs = []
    for start in range(0, len(unsorted), _RUN):
        runs.append(sorted(unsorted[start : start + _RUN]))  # type: ignore[type-var]
        yield
    for item in heapq.merge(*runs):  # type: ignore[type-var]
        found.append(item)
        yield
    return found


def _wild(patterns: Collection[_Pattern]) -> _Wild:
    stars = sum(it.pattern.count("*") for it in patterns if not it.version_2)
    return _Wild(stars, sum(it.version_2 and not _WILD.isdisjoint(it.pattern) for it in patterns))


def _path_cost(path: str, wild: _Wild) -> int:
    stars = wild.stars * (1 + len(path) // _STAR_PATH) // _STARS_PER_COST
    return _PATH_COST + stars + wild.globs * (1 + len(path) // _GLOB_PATH) // _GLOBS_PER_COST


def _pace(span: Span) -> tuple[str, str, object]:
    rate = span.rate
    return span.start, span.end, rate and (rate.interval, rate.documents, rate.seconds, rate.declared_interval)
