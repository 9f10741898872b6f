"""The answer of `POST /v1/test`: a row per decision, and tables of the groups, rules and terms that rows refer to.

A row takes a few hundred bytes whatever the file says. So the answer grows with the question and with the file, not
with their product.
"""

from collections.abc import Iterator
from datetime import datetime
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from pydantic import BaseModel, Field

from app.api.instants import instant
from app.api.long_work import separated
from app.api.schemas.answers import (
    NOTES,
    PARTIAL,
    ExtensionOut,
    GroupOut,
    NextRateOut,
    NoteOut,
    PurposeOut,
    RateOut,
    RobotsOut,
    RuleTextOut,
    SpanOut,
    SummaryOut,
    UsageOut,
    VisitOut,
    WarningOut,
    is_none,
)
from app.api.serialize import (
    EXPLAINED_RULES,
    directive_out,
    explained_rules,
    extensions_out,
    group_out,
    next_rate_out,
    notes_out,
    purposes_out,
    rate_out,
    spans_out,
    usage_out,
    visit_out,
)
from app.api.summary import summary
from app.cache.freshness import Snapshot
from app.evaluate import is_partial
from app.notes import agent_notes
from app.origin import Target
from app.purposes.judge import Judgements, judge_for
from app.purposes.policy import Purpose, PurposePolicy
from app.robots.agents import Agent
from app.robots.dialects import Dialect
from app.robots.explain import explain
from app.robots.groups import Selection
from app.robots.lines import Directive
from app.robots.rates import RateChange, schedule, visit_at
from app.robots.robots_txt import RobotsTxt
from app.robots.usage import Usage
from app.robots.verdict import Permission, Reason, Verdict


class MatchedOut(BaseModel):
    """A rule that matched, and the bytes of its normalised pattern: the longest decides, and allow on a tie."""

    rule: int = Field(description="Its index in `rules`.")
    length: int


class RowExplanationOut(SummaryOut):
    """The same, and the rules that matched; `reader` says how the group was found."""

    path: str = Field(description="The path and query that rules were matched against.")
    matched: int
    rules: list[MatchedOut] = Field(description="The first of them in order of precedence; the first one decided.")


class TestRowOut(BaseModel):
    """One decision. `allowed` is true only for the verdict `allow`.

    `rule`, `group`, `reader` and `usage` are 0-based indices into `rules`, `groups`, `readers` and `usages`.
    """

    url: str
    agent: str
    dialect: str
    verdict: Permission
    allowed: bool
    reason: Reason
    partial: bool = Field(description=PARTIAL)
    explanation: RowExplanationOut | SummaryOut = Field(
        description="Why, in a sentence; with `explain`, also the rules that matched, if a file decided."
    )
    rule: int | None = Field(description="The rule that decided.")
    group: int | None = Field(description="The group that applies to the agent.")
    reader: int | None = Field(description="The terms of the file for the agent; null if no file decided.")
    usage: int | None = Field(description="The usage preferences for the page.")
    purposes: dict[Purpose, PurposeOut] | None = Field(
        None,
        exclude_if=is_none,
        description="Whether the site permits each purpose of the test; absent without purposes.",
    )
    notes: list[NoteOut] | None = Field(None, exclude_if=is_none, description=NOTES)
    retry_at: str | None = Field(None, description="When to ask again, if the verdict is defer.")


class TimelineEntryOut(BaseModel):
    """The answer to the row's question from `after` seconds after the first fetch with the simulated outcome."""

    after: int
    at: str
    verdict: Permission
    reason: Reason
    stale: bool = Field(description="Whether the answer comes from the copy cached before.")


class SimulatedRowOut(TestRowOut):
    """A row under a simulated outcome: `robots` is what the service would have cached.

    `timeline` goes on past `at`, to the last change if the outcome stays the same.
    """

    robots: RobotsOut
    timeline: list[TimelineEntryOut]


class TestReaderOut(BaseModel):
    """The terms of the file, other than rules, for one agent in one dialect."""

    agent: str
    dialect: str
    rate: RateOut | None
    next_rate: NextRateOut | None
    crawl_delay: float | None
    visit: VisitOut | None
    tokens: list[str] | None = Field(
        None, description="With `explain`: the tokens that groups are looked up by, in order."
    )
    found: str | None = Field(None, description="With `explain`: how the group was found, as a sentence.")
    schedule: list[SpanOut] | None = Field(None, description="With `explain`: the rates of the whole UTC day.")


class TestTablesOut(BaseModel):
    """The tables that rows refer to, and what concerns the whole file."""

    readers: list[TestReaderOut]
    groups: list[GroupOut]
    rules: list[RuleTextOut]
    usages: list[UsageOut]
    sitemaps: list[str]
    licenses: list[str]
    extensions: list[ExtensionOut]
    warnings: list[WarningOut]
    left_out: int = Field(
        description="Rows left out, because computing or sending them would exceed the limits of a request."
    )


class TestOut(TestTablesOut):
    """A row per URL, agent and dialect, in this order."""

    rows: list[TestRowOut]


class SimulatedOut(TestTablesOut):
    """The answer under a simulated outcome."""

    rows: list[SimulatedRowOut]


class RowQuestion(NamedTuple):
    """The question of a row."""

    target: Target
    agent: Agent
    dialect: Dialect


class Tables:
    """The tables that the rows of one file refer to, filled while the rows are made.

    `size` is their JSON in characters, without the rules, which cannot exceed the file.
    """

    def __init__(
        self, robots: RobotsTxt, at: datetime, *, explained: bool, policy: PurposePolicy | None = None
    ) -> None:
        """`at` is the aware datetime at which rates are evaluated, `policy` the purposes that pages are wanted for."""
        self.size = 0
        self._robots = robots
        self._at = at
        self._explained = explained
        self._policy = policy
        self._readers: dict[tuple[Agent, str], int] = {}
        self._groups: dict[tuple[str, int], int] = {}
        self._rules: dict[Directive, int] = {}
        self._usages: dict[str, int] = {}
        self._reader_texts: list[str] = []
        self._group_texts: list[str] = []

    def row(
        self,
        question: RowQuestion,
        verdict: Verdict,
        *,
        by_file: bool = True,
        snapshot: Snapshot | None = None,
        retry_at: float | None = None,
    ) -> TestRowOut:
        """The row of a decision.

        `by_file`: the file took part in it. `snapshot` is what a simulated outage would leave in the cache. `retry_at`
        (Unix seconds) is when to ask again after a defer.
        """
        usage = self._usage(question, verdict) if by_file else None
        verdict, purposes = self._judge(verdict, usage)
        partial = by_file and is_partial(self._robots, question.dialect, verdict)
        sentence = summary(verdict, question.agent, snapshot, retry_at=retry_at, purposes=purposes, partial=partial)
        selection = verdict.selection
        return TestRowOut(
            url=question.target.url,
            agent=question.agent.token,
            dialect=question.dialect.name,
            verdict=verdict.permission,
            allowed=verdict.permission is Permission.ALLOW,
            reason=verdict.reason,
            partial=partial,
            explanation=self._explanation(question, selection, sentence, detailed=by_file and self._explained),
            rule=None if verdict.rule is None else self._rule(verdict.rule.directive),
            group=self._group(verdict),
            reader=self._reader(question) if by_file else None,
            usage=None if usage is None else self._usage_place(usage),
            purposes=None if purposes is None else purposes_out(purposes),
            notes=notes_out(agent_notes(question.agent, question.dialect)),
            retry_at=None if retry_at is None else instant(retry_at),
        )

    def enforce(self, question: RowQuestion, verdict: Verdict, *, by_file: bool = True) -> Verdict:
        """The verdict under the policy about purposes."""
        if self._policy is None or not self._policy.enforce:
            return verdict
        return self._judge(verdict, self._usage(question, verdict) if by_file else None)[0]

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
        yield '],"licenses":['
        yield from separated(map(quoted, document.licenses))
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

    def _reader(self, question: RowQuestion) -> int:
        key = question.agent, question.dialect.name
        if key not in self._readers:
            self._readers[key] = self._add(self._reader_texts, self._reader_text(question))
        return self._readers[key]

    def _reader_text(self, question: RowQuestion) -> str:
        _, agent, dialect = question
        reading = self._robots.reading(dialect)
        selection = reading.select(agent)
        terms = None if selection is None else reading.terms(selection, agent)
        now = None if terms is None else terms.rates.at(self._at)
        change = None
        if terms is not None and now is not None and now.valid_until is not None:
            change = RateChange(now.valid_until, terms.rates.at(now.valid_until).value)
        reader = TestReaderOut(
            agent=agent.token,
            dialect=dialect.name,
            rate=None if now is None else rate_out(now.value, now.valid_until),
            next_rate=next_rate_out(change),
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

    def _usage(self, question: RowQuestion, verdict: Verdict) -> Usage | None:
        selection = verdict.selection
        if selection is None:
            return None
        # Read again for each row: a file can state much for each of many agents, and the core bounds what it caches.
        terms = self._robots.reading(question.dialect).terms(selection, question.agent)
        allowed = verdict.permission is Permission.ALLOW
        return None if terms.usage is None else terms.usage.at(question.target.path, allowed=allowed)

    def _judge(self, verdict: Verdict, usage: Usage | None) -> tuple[Verdict, Judgements | None]:
        return (verdict, None) if self._policy is None else judge_for(self._policy, verdict, usage)

    def _usage_place(self, usage: Usage) -> int:
        text = usage_out(usage).model_dump_json()
        if text not in self._usages:
            self.size += len(text)
        return self._usages.setdefault(text, len(self._usages))

    def _explanation(
        self, question: RowQuestion, selection: Selection | None, sentence: str, *, detailed: bool
    ) -> RowExplanationOut | SummaryOut:
        if not detailed:
            return SummaryOut(summary=sentence)
        target, agent, dialect = question
        found = explain(self._robots, dialect, agent, target.path, limit=EXPLAINED_RULES, selection=selection)
        rules = [MatchedOut(rule=self._rule(it.directive), length=it.length) for it in explained_rules(found)]
        return RowExplanationOut(summary=sentence, path=found.path, matched=found.matched, rules=rules)

    def _add(self, texts: list[str], text: str) -> int:
        self.size += len(text)
        texts.append(text)
        return len(texts) - 1
