"""What changed from one robots.txt to another: rules, paths that became allowed or disallowed, rates, by agent.

Not all paths can be tried, so some are drawn from the patterns of either file and judged by both files: at the end of
each pattern, behind the end of those that need not match there, and where two patterns meet, as far as the others show
no path that became allowed, or none that no longer is. Costs do not depend on the direction: the changes from the
second file to the first are the same, reversed.
"""

from collections.abc import Collection, Iterable, Iterator, KeysView
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import NamedTuple

from robots_core.diff.witness import Pattern, composed, drawn, filler
from robots_core.file import File, dialect_named
from robots_core.robots.agents import AGENT_LIMIT, STAR, Agent, known_agents, read_agent
from robots_core.robots.dialects import Dialect
from robots_core.robots.groups import Group, Groups, Selection, tokens_of
from robots_core.robots.judge import judge
from robots_core.robots.lines import Directive, readable
from robots_core.robots.patterns import INDEX_PAGE, compile_seznam
from robots_core.robots.rates import Span, schedule
from robots_core.robots.robots_txt import Reading
from robots_core.robots.verdict import Permission, Verdict

COMPARED_AGENTS = 1000
"""How many agents are compared in addition to `*`: the first by name."""

WORK = 1_000_000
"""What a comparison may cost by default, in about the microseconds that hostile files take."""

REPORT_CHARACTERS = 500_000
"""Characters of all paths that are reported, and as many of everything else."""

COMPOSED = 200
"""How many paths where two patterns meet are tried for agents with the same groups."""

LONGEST_PATTERN = 2000
"""Characters of the longest pattern that a path is drawn from."""

_AGENT_COST, _RULE_COST, _MEMBER_COST, _PATH_COST, _ROW_ROOM = 50, 10, 1, 20, 100
_BYTES_PER_COST = 100  # of both files, for a dialect that searches all User-agent lines for an agent
# How many stars, or globs, cost 1 for a short path, and how many characters of it cost 1 more.
_STARS_PER_COST, _STAR_PATH = 256, 64
_GLOBS_PER_COST, _GLOB_PATH = 6, 32
_PAIRS = 10 * COMPOSED  # of patterns that may meet
_WILD = frozenset("*?[")
_INDEX_PAGE = INDEX_PAGE.decode()


class _Wild(NamedTuple):
    """The number of stars in patterns of version 1.0, and of patterns of version 2.0 with wildcards."""

    stars: int
    globs: int


class PathChange(NamedTuple):
    """A path that the two decide differently."""

    path: str
    before: Verdict
    after: Verdict

    @property
    def gained(self) -> bool | None:
        """True if the path became allowed, False if it was allowed before, None if neither."""
        opened = self.after.permission is Permission.ALLOW
        return opened if opened or self.before.permission is Permission.ALLOW else None


class RatesChange(NamedTuple):
    """The rates of the whole UTC day before and after, which differ in more than line numbers."""

    before: tuple[Span, ...]
    after: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class AgentsChange:
    """What changed for all of `agents`: the rules of their groups, verdicts, rates."""

    agents: tuple[str, ...]
    added: tuple[Directive, ...]
    removed: tuple[Directive, ...]
    paths: tuple[PathChange, ...]
    rates: RatesChange | None


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes, those for `*` first, then by name.

    `truncated`: not everything was compared or reported, because a limit was reached.
    """

    agents: tuple[AgentsChange, ...]
    sitemaps_added: tuple[str, ...]
    sitemaps_removed: tuple[str, ...]
    truncated: bool


def changes(
    before: File, after: File, dialect: str = "rfc9309", *, forbidden: bool = False, work: int = WORK
) -> Changes:
    """Compare two files, or outcomes without one, as `dialect` reads them.

    They are compared for `*`, for every agent that either names, and for the known crawlers that have no group of their
    own and go by that of such an agent, as Applebot goes by Googlebot's. `*` is all others that obey the group for `*`.

    `forbidden`: whether a 401 or 403 closes the site; `work` is what the comparison may cost. Raises UnknownDialect.
    """
    comparison = _Comparison(before, after, dialect_named(dialect), _Budget(work), forbidden=forbidden)
    comparison.run()
    return comparison.changes()


class _View:
    """A file as the dialect reads it."""

    def __init__(self, file: File, dialect: Dialect) -> None:
        self._reading: Reading | None = None if file.robots is None else file.robots.reading(dialect)
        self.file = file
        self.sitemaps = file.sitemaps

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
    """The groups of an agent on either side."""

    before: tuple[Group, ...]
    after: tuple[Group, ...]


class _Difference(NamedTuple):
    added: tuple[Directive, ...]
    removed: tuple[Directive, ...]
    paths: tuple[PathChange, ...]


class _Budget:
    """What comparing may still cost, and how much may still be reported; `exceeded` once something was left out."""

    def __init__(self, work: int) -> None:
        self._work = work
        self._characters = REPORT_CHARACTERS
        self._path_characters = REPORT_CHARACTERS
        self.exceeded = False

    def spend(self, work: int) -> bool:
        """Whether so much work is permitted; if so, count it as done."""
        if work > self._work:
            self.exceeded = True
            return False
        self._work -= work
        return True

    def report(self, characters: int) -> bool:
        """Whether a row with so many characters may be reported; if so, count them."""
        if characters + _ROW_ROOM > self._characters:
            self.exceeded = True
            return False
        self._characters -= characters + _ROW_ROOM
        return True

    def report_path(self, characters: int) -> bool:
        """Whether a path may be reported in so many characters; if so, count them."""
        if characters + _ROW_ROOM > self._path_characters:
            self.exceeded = True
            return False
        self._path_characters -= characters + _ROW_ROOM
        return True


class _Paths:
    """Compares the verdicts on paths that are drawn from patterns."""

    def __init__(self, before: File, after: File, dialect: Dialect, budget: _Budget, *, forbidden: bool) -> None:
        self._before = before
        self._after = after
        self._dialect = dialect
        self._budget = budget
        self._forbidden = forbidden
        self._literal = dialect.name == "draft1996"

    def compare(self, before: Collection[Pattern], after: Collection[Pattern], agent: Agent) -> tuple[PathChange, ...]:
        old, new = self._short(before), self._short(after)
        fill = filler([*old, *new])
        drawn_before, drawn_after = self._drawn(old, fill), self._drawn(new, fill)
        wild = _Wild(0, 0) if self._literal else _wild([*before, *after])
        found: list[PathChange] = []
        for path in ("/", *sorted(drawn_before ^ drawn_after), *sorted(drawn_before & drawn_after)):
            if not self._try(path, wild, agent, found):
                break
        else:
            self._compose(old, new, fill, wild, agent, found)
        return tuple(sorted(found, key=lambda change: change.path))

    def _try(self, path: str, wild: _Wild, agent: Agent, found: list[PathChange]) -> bool:
        """Judge a path and append it to `found` if the verdict changed; False if a limit is reached."""
        if not self._budget.spend(_path_cost(path, wild)):
            return False
        change = PathChange(path, self._judge(self._before, agent, path), self._judge(self._after, agent, path))
        if change.before.permission is change.after.permission:
            return True
        rules = sum(len(it.rule.directive.value) for it in change[1:] if it.rule)
        if not self._budget.report_path(len(path) + rules):
            return False
        found.append(change)
        return True

    def _compose(
        self, old: set[Pattern], new: set[Pattern], fill: str, wild: _Wild, agent: Agent, found: list[PathChange]
    ) -> None:
        """Try paths where a pattern that changed meets another one, until some were gained and some lost."""
        changed = old ^ new
        paths = set() if self._literal else islice(_meetings(changed, old | new, fill), COMPOSED)
        ways = {change.gained for change in found}
        for path in sorted(set(paths)):
            if len(ways) > 1:
                return
            further: list[PathChange] = []
            if not self._try(path, wild, agent, further):
                return
            found += (change for change in further if change.gained not in ways)
            ways |= {change.gained for change in further}

    def _short(self, patterns: Collection[Pattern]) -> set[Pattern]:
        short = {pattern for pattern in patterns if len(pattern.text) <= LONGEST_PATTERN}
        self._budget.exceeded |= len(short) < len(patterns)
        return short

    def _drawn(self, patterns: Iterable[Pattern], fill: str) -> set[str]:
        paths = {path for pattern in patterns for path in drawn(pattern, literal=self._literal, fill=fill)}
        if self._dialect.name == "google":
            # An Allow of an index page is one of its directory, too (spec D10).
            paths |= {path.rpartition("/")[0] + "/" for path in paths if _INDEX_PAGE in path.rpartition("/")[2]}
        return paths - {"/"}

    def _judge(self, file: File, agent: Agent, path: str) -> Verdict:
        return judge(file.access, file.robots, self._dialect, agent, path, forbidden=self._forbidden)


class _Comparison:
    """Compares two files: `run` it, then read `changes`."""

    def __init__(self, before: File, after: File, dialect: Dialect, budget: _Budget, *, forbidden: bool) -> None:
        self._before = _View(before, dialect)
        self._after = _View(after, dialect)
        self._dialect = dialect
        self._budget = budget
        self._paths = _Paths(before, after, dialect, budget, forbidden=forbidden)
        size = sum(len(file.robots.body) for file in (before, after) if file.robots is not None)
        self._agent_cost = _AGENT_COST + (size // _BYTES_PER_COST if dialect.name == "draft1996" else 0)
        self._members: dict[Group, int] = {}
        self._differences: dict[_Pair, _Difference | None] = {}
        self._agents_by_change: dict[tuple[_Pair, RatesChange | None], list[str]] = {}

    def run(self) -> None:
        """Compare, for one agent after another."""
        for agent in self._agents():
            if not self._budget.spend(self._agent_cost):
                break
            before, after = self._before.select(agent), self._after.select(agent)
            pair = _Pair(before.groups if before else (), after.groups if after else ())
            if pair not in self._differences:
                self._differences[pair] = self._difference(pair, agent)
            rates = self._rates(pair, before, after, agent)
            self._agents_by_change.setdefault((pair, rates), []).append(agent.token)

    def changes(self) -> Changes:
        """The changes that were found."""
        found = []
        for (pair, rates), agents in self._agents_by_change.items():
            difference = self._differences[pair]
            if difference is not None or rates is not None:
                found.append(AgentsChange(tuple(agents), *(difference or _Difference((), (), ())), rates))
        old, new = set(self._before.sitemaps), set(self._after.sitemaps)
        changed = {url for url in sorted(old ^ new) if self._budget.report(len(url))}
        return Changes(
            agents=tuple(found),
            sitemaps_added=tuple(url for url in self._after.sitemaps if url in changed),
            sitemaps_removed=tuple(url for url in self._before.sitemaps if url in changed),
            truncated=self._budget.exceeded,
        )

    def _agents(self) -> list[Agent]:
        names: dict[str, str] = {}
        for view in (self._before, self._after):
            values = [] if (groups := view.groups) is None else groups.scan.lines.values(groups.agent_positions)
            for value, token in zip(values, tokens_of(values, self._dialect.token), strict=True):
                spelt = readable(value[: len(token)])
                if token and len(token) <= AGENT_LIMIT and spelt < names.get(token, "\x7f"):
                    names[token] = spelt
        names.pop(STAR, None)
        if len(names) > COMPARED_AGENTS:
            self._budget.exceeded = True
        named = [read_agent(names[token]) for token in sorted(names)[:COMPARED_AGENTS]]
        return [read_agent(STAR), *named, *self._followers(names.keys())]

    def _followers(self, names: KeysView[str]) -> list[Agent]:
        """The known crawlers that neither file names and that go by a group for one of these names."""
        known = {token: agent for token, agent in known_agents().items() if token not in names}
        if self._dialect.name == "draft1996":
            # A record is for all whose name is within the one that it has (spec E2).
            text = "\n".join(names)
            return [agent for token, agent in sorted(known.items()) if token in text]
        return [agent for _, agent in sorted(known.items()) if not names.isdisjoint(self._dialect.tokens(agent))]

    def _difference(self, pair: _Pair, agent: Agent) -> _Difference | None:
        """What changed for the agents of these groups; None for nothing, as far as it was compared."""
        reads_versions = self._dialect.compile is compile_seznam
        old, new = (_RuleSet(reads_versions=reads_versions) for _ in pair)
        for groups, rules in zip(pair, (old, new), strict=True):
            for group in groups:
                positions = group.rule_positions
                if not self._budget.spend(_RULE_COST * len(positions)):
                    return None
                rules.begin(group)
                for position in positions:
                    rules.add(group.rule(position))
        if self._reads_alike(old, new):
            return None
        changed = {rule for rule in sorted(old.first.keys() ^ new.first.keys()) if self._budget.report(len(rule[1]))}
        added = tuple(directive for rule, directive in new.first.items() if rule in changed)
        removed = tuple(directive for rule, directive in old.first.items() if rule in changed)
        paths = self._paths.compare(old.patterns, new.patterns, agent)
        return _Difference(added, removed, paths) if added or removed or paths else None

    def _reads_alike(self, old: "_RuleSet", new: "_RuleSet") -> bool:
        """Whether all verdicts are bound to be the same, so that no path needs to be judged."""
        before, after = self._before.file, self._after.file
        if before.robots is None or after.robots is None:
            return before.access == after.access
        return old.written == new.written

    def _rates(
        self, pair: _Pair, before: Selection | None, after: Selection | None, agent: Agent
    ) -> RatesChange | None:
        count = sum(map(self._member_count, (*pair.before, *pair.after)))
        if not self._budget.spend(_MEMBER_COST * count):
            return None
        change = RatesChange(self._before.rates(before, agent), self._after.rates(after, agent))
        if [*map(_pace, change.before)] == [*map(_pace, change.after)]:
            return None
        return change if self._budget.report(_ROW_ROOM * (len(change.before) + len(change.after))) else None

    def _member_count(self, group: Group) -> int:
        """One for the group and one for each of its members."""
        count = self._members.get(group)
        if count is None:
            count = self._members[group] = 1 + len(group.member_positions)
        return count


class _RuleSet:
    """The rules of some groups: as written, the first of each that are equal, and their patterns.

    `reads_versions`: whether the dialect knows Robot-version (spec F12).
    """

    def __init__(self, *, reads_versions: bool) -> None:
        self._reads_versions = reads_versions
        self.written: list[tuple[str, bytes] | bool] = []
        self.first: dict[tuple[str, bytes], Directive] = {}
        self.patterns: set[Pattern] = set()
        self._version_2 = False

    def begin(self, group: Group) -> None:
        """Continue with the rules of `group`."""
        self._version_2 = self._reads_versions and group.version_2
        self.written.append(self._version_2)

    def add(self, rule: Directive) -> None:
        """Add a rule of that group."""
        written = str(rule.key), rule.value
        self.written.append(written)
        self.first.setdefault(written, rule)
        if rule.value:
            self.patterns.add(Pattern(rule.key, rule.value.decode("latin-1"), self._version_2))


def _meetings(changed: Collection[Pattern], patterns: Collection[Pattern], fill: str) -> Iterator[str]:
    """Paths that two patterns match, one of which changed and one of which has a wildcard."""
    wild = sorted(pattern for pattern in patterns if "*" in pattern.text)
    pairs = chain(product(wild, sorted(changed)), product((it for it in wild if it in changed), sorted(patterns)))
    for one, other in islice(pairs, _PAIRS):
        yield from composed(one, other, fill)


def _wild(patterns: Collection[Pattern]) -> _Wild:
    stars = sum(it.text.count("*") for it in patterns if not it.version_2)
    return _Wild(stars, sum(it.version_2 and not _WILD.isdisjoint(it.text) for it in patterns))


def _path_cost(path: str, wild: _Wild) -> int:
    stars = wild.stars * (1 + len(path) // _STAR_PATH) // _STARS_PER_COST
    return _PATH_COST + stars + wild.globs * (1 + len(path) // _GLOB_PATH) // _GLOBS_PER_COST


def _pace(span: Span) -> tuple[str, str, object]:
    rate = span.rate
    return span.start, span.end, rate and (rate.interval, rate.documents, rate.seconds, rate.declared_interval)
