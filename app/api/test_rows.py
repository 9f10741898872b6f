"""The answer of `POST /v1/test`: a row per decision, and beside the rows, once, what many of them refer to.

A row is a few hundred bytes whatever the file says. Groups, rates, rules and usages are told in lists of their own, so
that an answer is in proportion to the question and the file, and not to their product.
"""

from collections.abc import Iterator
from datetime import datetime
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from pydantic import BaseModel, Field

from app.api.long_work import separated
from app.api.schemas.answers import (
    ExtensionOut,
    GroupOut,
    RateOut,
    RobotsOut,
    RuleTextOut,
    SpanOut,
    UsageOut,
    VisitOut,
    WarningOut,
)
from app.api.serialize import (
    EXPLAINED_RULES,
    directive_out,
    explained_rules,
    extensions_out,
    group_out,
    rate_out,
    spans_out,
    usage_out,
    visit_out,
)
from app.origin import Target
from app.robots.agents import Agent
from app.robots.dialects import Dialect
from app.robots.explain import explain
from app.robots.groups import Selection
from app.robots.lines import Directive
from app.robots.rates import schedule, visit_at
from app.robots.robots_txt import RobotsTxt
from app.robots.verdict import Permission, Reason, Verdict


class MatchedOut(BaseModel):
    """A rule that matched, and the bytes of its normalised pattern: the longest decides, allow before disallow."""

    rule: int = Field(description="Its place in `rules`.")
    length: int


class RowExplanationOut(BaseModel):
    """Which rules matched; how the group was found is told with the reader."""

    path: str = Field(description="The path and query as rules were matched against them.")
    matched: int
    rules: list[MatchedOut] = Field(description="The first of them in order of precedence; the very first decided.")


class TestRowOut(BaseModel):
    """One decision. `allowed` is true only for the verdict `allow`.

    `rule`, `group`, `reader` and `usage` are places in `rules`, `groups`, `readers` and `usages`, counted from 0.
    """

    url: str
    agent: str
    dialect: str
    verdict: Permission
    allowed: bool
    reason: Reason
    rule: int | None = Field(description="The rule that decided.")
    group: int | None = Field(description="The group that was asked.")
    reader: int | None = Field(description="What the file says to the agent; null where no file decided.")
    usage: int | None = Field(description="What is stated about the use of the page.")
    retry_at: str | None = Field(None, description="When to ask again; set where the verdict is defer.")
    explanation: RowExplanationOut | None = Field(None, description="Where it was asked for and there is a file.")


class TimelineEntryOut(BaseModel):
    """From `after` seconds on, counted from the first fetch of that outcome, the row's question is answered so."""

    after: int
    at: str
    verdict: Permission
    reason: Reason
    stale: bool = Field(description="Whether the copy from before is what answers.")


class SimulatedRowOut(TestRowOut):
    """A row where an outcome is pretended: `robots` is what would be held and told of.

    `timeline` goes on past `at`, to the last change that there will be if the origin stays as it is.
    """

    robots: RobotsOut
    timeline: list[TimelineEntryOut]


class TestReaderOut(BaseModel):
    """What the file says to one agent as one dialect reads it, beside its rules."""

    agent: str
    dialect: str
    rate: RateOut | None
    crawl_delay: float | None
    visit: VisitOut | None
    tokens: list[str] | None = Field(None, description="Explained: what groups were looked up by, in this order.")
    found: str | None = Field(None, description="Explained: how the group was found, as a sentence.")
    schedule: list[SpanOut] | None = Field(None, description="Explained: the rates of the whole day.")


class TestTablesOut(BaseModel):
    """What rows refer to, and what is true of the whole file."""

    readers: list[TestReaderOut]
    groups: list[GroupOut]
    rules: list[RuleTextOut]
    usages: list[UsageOut]
    sitemaps: list[str]
    extensions: list[ExtensionOut]
    warnings: list[WarningOut]
    left_out: int = Field(
        description="How many more rows there would be: to work them out, or to tell them, is too much."
    )


class TestOut(TestTablesOut):
    """A row per URL, agent and dialect, in this order."""

    rows: list[TestRowOut]


class SimulatedOut(TestTablesOut):
    """The answer where an outcome is pretended."""

    rows: list[SimulatedRowOut]


class Asked(NamedTuple):
    """One row's question."""

    target: Target
    agent: Agent
    dialect: Dialect


class Tables:
    """What the rows of one file refer to, collected while they are made.

    `size` is in characters of JSON, but for the rules, which are no more than the file has.
    """

    def __init__(self, robots: RobotsTxt, at: datetime, *, explained: bool) -> None:
        """`at` is the instant that rates are asked for, an aware one."""
        self.size = 0
        self._robots = robots
        self._at = at
        self._explained = explained
        self._readers: dict[tuple[Agent, str], int] = {}
        self._groups: dict[tuple[str, int], int] = {}
        self._rules: dict[Directive, int] = {}
        self._usages: dict[str, int] = {}
        self._reader_texts: list[str] = []
        self._group_texts: list[str] = []

    def row(self, asked: Asked, verdict: Verdict, *, by_file: bool = True) -> TestRowOut:
        """The row of a decision; `by_file` says whether the file had a say in it."""
        allowed = verdict.permission is Permission.ALLOW
        return TestRowOut(
            url=asked.target.url,
            agent=asked.agent.token,
            dialect=asked.dialect.name,
            verdict=verdict.permission,
            allowed=allowed,
            reason=verdict.reason,
            rule=None if verdict.rule is None else self._rule(verdict.rule.directive),
            group=self._group(verdict),
            reader=self._reader(asked) if by_file else None,
            usage=self._usage(asked, verdict.selection, allowed=allowed) if by_file else None,
            explanation=self._explanation(asked, verdict.selection) if by_file and self._explained else None,
        )

    def texts(self) -> Iterator[str]:
        """The members of TestTablesOut up to `extensions`, piece by piece."""
        document = self._robots
        yield '"readers":['
        yield from separated(self._reader_texts)
        yield '],"groups":['
        yield from separated(self._group_texts)
        yield '],"rules":['
        lines = document.line_texts({line for line, _, _ in self._rules})
        rules = map(directive_out, self._rules)
        yield from separated(RuleTextOut(**dict(it), text=lines[it.line]).model_dump_json() for it in rules)
        yield '],"usages":['
        yield from separated(self._usages)
        yield '],"sitemaps":['
        yield from separated(map(quoted, document.sitemaps))
        yield '],"extensions":['
        yield from separated(it.model_dump_json() for it in extensions_out(document.extensions))
        yield "]"

    def _rule(self, directive: Directive) -> int:
        return self._rules.setdefault(directive, len(self._rules))

    def _group(self, verdict: Verdict) -> int | None:
        if verdict.group is None or verdict.selection is None:
            return None
        token = verdict.selection.token
        key = token, verdict.group.line
        if key not in self._groups:
            self._groups[key] = self._add(self._group_texts, group_out(token, verdict.group).model_dump_json())
        return self._groups[key]

    def _reader(self, asked: Asked) -> int:
        key = asked.agent, asked.dialect.name
        if key not in self._readers:
            self._readers[key] = self._add(self._reader_texts, self._reader_text(asked))
        return self._readers[key]

    def _reader_text(self, asked: Asked) -> str:
        _, agent, dialect = asked
        reading = self._robots.reading(dialect)
        selection = reading.select(agent)
        terms = None if selection is None else reading.terms(selection, agent)
        now = None if terms is None else terms.rates.at(self._at)
        reader = TestReaderOut(
            agent=agent.token,
            dialect=dialect.name,
            rate=None if now is None else rate_out(now.value, now.valid_until),
            crawl_delay=terms.crawl_delay.seconds if terms and terms.crawl_delay else None,
            visit=visit_out(visit_at(terms.visits, self._at)) if terms and terms.visits else None,
        )
        if not self._explained:
            return reader.model_dump_json(exclude={"tokens", "found", "schedule"})
        explanation = explain(self._robots, dialect, agent, "/", limit=0, selection=selection)
        reader.tokens = list(explanation.tokens)
        reader.found = explanation.group
        reader.schedule = spans_out(schedule(terms.rates)) if terms else []
        return reader.model_dump_json()

    def _usage(self, asked: Asked, selection: Selection | None, *, allowed: bool) -> int | None:
        if selection is None:
            return None
        # Terms are asked for again with each row: a file can state much to each of many agents, and the core keeps
        # of that what there is room for.
        terms = self._robots.reading(asked.dialect).terms(selection, asked.agent)
        usage = None if terms.usage is None else terms.usage.at(asked.target.path, allowed=allowed)
        if usage is None:
            return None
        text = usage_out(usage).model_dump_json()
        if text not in self._usages:
            self.size += len(text)
        return self._usages.setdefault(text, len(self._usages))

    def _explanation(self, asked: Asked, selection: Selection | None) -> RowExplanationOut:
        target, agent, dialect = asked
        found = explain(self._robots, dialect, agent, target.path, limit=EXPLAINED_RULES, selection=selection)
        rules = [MatchedOut(rule=self._rule(it.directive), length=it.length) for it in explained_rules(found)]
        return RowExplanationOut(path=found.path, matched=found.matched, rules=rules)

    def _add(self, texts: list[str], text: str) -> int:
        self.size += len(text)
        texts.append(text)
        return len(texts) - 1
