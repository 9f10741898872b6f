"""The answer of `GET /v1/robots`: a file told whole, its rates and uses as declared, and as one reader takes them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring as quoted
from typing import TypeVar

from pydantic import BaseModel, Field

from app.api.long_work import separated
from app.api.schemas.answers import ExtensionOut, GroupOut, RobotsOut, RuleOut, SpanOut, WarningOut, WindowOut
from app.api.serialize import (
    directive_out,
    extensions_out,
    group_out,
    robots_out,
    spans_out,
    window_out,
)
from app.evaluate import CachedFile
from app.origin import Origin
from app.robots.access import Successful
from app.robots.agents import Agent
from app.robots.dialects import Dialect
from app.robots.groups import Group
from app.robots.lines import Directive, Key, readable
from app.robots.rates import (
    CrawlDelay,
    Parsed,
    RequestRate,
    Timetable,
    VisitTime,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
    schedule,
)
from app.robots.robots_txt import RobotsTxt
from app.robots.usage import USAGE_KEYS, UsageTerms

T = TypeVar("T")


class DelayOut(BaseModel):
    """A Crawl-delay in seconds; `capped` where it is so long that a crawler may well cap it; nothing here does."""

    seconds: float
    line: int
    capped: bool


class RequestRateOut(BaseModel):
    """A Request-rate line: so many documents in so many seconds, in its window or, where that is null, all day."""

    documents: int
    seconds: int
    interval: float
    window: WindowOut | None
    line: int


class VisitTimeOut(WindowOut):
    """A Visit-time line: one window of the UTC day in which visits are welcome."""

    line: int


class DeclaredOut(BaseModel):
    """What a group's lines say of pace, in file order; a line that cannot be read is in `warnings` only."""

    crawl_delays: list[DelayOut]
    request_rates: list[RequestRateOut]
    visit_times: list[VisitTimeOut]


class PathUsageOut(BaseModel):
    """What Content-Usage states, by category, of such paths, `*` being every one; the first that fits counts."""

    path: str
    content_usage: dict[str, str]


class GroupUsageOut(BaseModel):
    """What is stated about the use of what is fetched; Content-Signal is for all paths.

    `ai_training` are the Allow- and DisallowAITraining lines; the first one that fits counts.
    """

    paths: list[PathUsageOut]
    content_signal: dict[str, str]
    ai_training: list[RuleOut]


class RobotsGroupOut(BaseModel):
    """A group, its rules in file order, and what else is said to its agents."""

    agents: list[str]
    line: int
    rules: list[RuleOut]
    members: list[ExtensionOut]
    declared: DeclaredOut
    usage: GroupUsageOut | None


class ReaderOut(BaseModel):
    """What the file means to the agent that was asked for, beside its rules.

    `group` is the first that speaks for it. `schedule` is the pace of the whole UTC day as the dialect obeys it, and
    `visits` are the hours in which it is welcome, null where no line limits them.
    """

    agent: str
    policy: bool = Field(description="A token to state a preference with: nothing ever fetches under this name.")
    exempt: bool = Field(description="Its vendor says that it does not, or not always, ask robots.txt.")
    group: GroupOut | None
    crawl_delay: DelayOut | None
    schedule: list[SpanOut]
    visits: list[WindowOut] | None
    usage: GroupUsageOut | None


class FactsOut(BaseModel):
    """The facts of the fetch alone."""

    robots: RobotsOut


class RobotsFileOut(FactsOut):
    """What is held of one origin's robots.txt, grouped as `dialect` reads it; `text` is null where there is no file."""

    dialect: str
    text: str | None = None
    groups: list[RobotsGroupOut] = []
    reader: ReaderOut | None = Field(None, description="Where an agent was named, and there is a file.")
    sitemaps: list[str] = []
    licenses: list[str] = Field([], description="Values of License lines (RSL), which bind every crawler.")
    extensions: list[ExtensionOut] = []
    warnings: list[WarningOut] = []


def facts_out(origin: Origin, file: CachedFile) -> FactsOut:
    """The facts of the fetch, and nothing of the file."""
    return FactsOut(robots=robots_out(origin, file.cached))


def content_type_of(file: CachedFile) -> str | None:
    """The Content-Type that the file came with."""
    snapshot = file.cached.snapshot
    if snapshot is not None and isinstance(snapshot.access, Successful):
        return snapshot.access.content_type
    return None


def held_file_texts(
    origin: Origin, file: CachedFile, dialect: Dialect, agent: Agent | None, warnings: Sequence[WarningOut]
) -> Iterator[str]:
    """The JSON of RobotsFileOut, piece by piece: a file that is made to be slow takes seconds."""
    facts = robots_out(origin, file.cached)
    if file.robots is None:
        yield RobotsFileOut(robots=facts, dialect=dialect.name).model_dump_json()
        return
    robots = file.robots
    yield f'{{"robots":{facts.model_dump_json()},"dialect":{quoted(dialect.name)}'
    yield f',"text":{quoted(robots.body.decode("utf-8", "replace"))},"groups":['
    for at, group in enumerate(robots.reading(dialect).groups):
        yield "," if at else ""
        yield from _group_texts(group)
    yield '],"reader":'
    yield "null" if agent is None else _reader(robots, dialect, agent).model_dump_json()
    yield ',"sitemaps":['
    yield from separated(map(quoted, robots.sitemaps))
    yield '],"licenses":['
    yield from separated(map(quoted, robots.licenses))
    yield '],"extensions":['
    yield from separated(map(_json, extensions_out(robots.extensions)))
    yield '],"warnings":['
    yield from separated(map(_json, warnings))
    yield "]}"


def _group_texts(group: Group) -> Iterator[str]:
    """The JSON of RobotsGroupOut."""
    members = group.members
    usages = [member for member in members if member.key in USAGE_KEYS]
    yield '{"agents":['
    yield from separated(quoted(readable(name)) for name in group.agents)
    yield f'],"line":{group.line},"rules":['
    yield from separated(_json(directive_out(rule)) for rule in group.rules)
    yield '],"members":['
    yield from separated(map(_json, extensions_out(members)))
    yield '],"declared":{"crawl_delays":['
    yield from separated(_json(_delay(it)) for it in _read(members, Key.CRAWL_DELAY, read_crawl_delay))
    yield '],"request_rates":['
    yield from separated(_json(_request_rate(it)) for it in _read(members, Key.REQUEST_RATE, read_request_rate))
    yield '],"visit_times":['
    yield from separated(_json(_visit_time(it)) for it in _read(members, Key.VISIT_TIME, read_visit_time))
    yield ']},"usage":'
    yield _json(_usage(UsageTerms(usages))) if usages else "null"
    yield "}"


def _json(model: BaseModel) -> str:
    return model.model_dump_json()


def _reader(robots: RobotsTxt, dialect: Dialect, agent: Agent) -> ReaderOut:
    reading = robots.reading(dialect)
    selection = reading.select(agent)
    terms = None if selection is None else reading.terms(selection, agent)
    return ReaderOut(
        agent=agent.token,
        policy=agent.policy,
        exempt=agent.exempt,
        group=None if selection is None else group_out(selection.token, selection.groups[0]),
        crawl_delay=_delay(terms.crawl_delay) if terms and terms.crawl_delay else None,
        schedule=[] if terms is None else spans_out(schedule(terms.rates)),
        visits=_open(terms.visits) if terms and terms.visits is not None else None,
        usage=_usage(terms.usage) if terms and terms.usage else None,
    )


def _read(lines: Iterable[Directive], wanted: Key, parse: Callable[[str, int], Parsed[T]]) -> Iterator[T]:
    for directive in lines:
        if directive.key is wanted:
            declared = parse(directive.text, directive.line).value
            if declared is not None:
                yield declared


def _delay(delay: CrawlDelay) -> DelayOut:
    return DelayOut(seconds=delay.seconds, line=delay.line, capped=delay.capped)


def _request_rate(rate: RequestRate) -> RequestRateOut:
    return RequestRateOut(
        documents=rate.documents,
        seconds=rate.seconds,
        interval=rate.interval,
        window=window_out(rate.window),
        line=rate.line,
    )


def _visit_time(time: VisitTime) -> VisitTimeOut:
    return VisitTimeOut(start=time.window.start_text, end=time.window.end_text, line=time.line)


def _usage(terms: UsageTerms) -> GroupUsageOut:
    return GroupUsageOut(
        paths=[PathUsageOut(path=path, content_usage=dict(stated)) for path, stated in terms.by_path],
        content_signal=dict(terms.signals),
        ai_training=[directive_out(line) for line in terms.ai_training],
    )


def _open(table: Timetable[bool]) -> list[WindowOut]:
    ends = (*table.starts[1:], 24 * 60)
    return [
        WindowOut(start=_clock(start), end=_clock(end))
        for start, end, is_open in zip(table.starts, ends, table.values, strict=True)
        if is_open
    ]


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
