"""The answer of `GET /v1/robots`: a whole file, with rates and usage as declared and as one reader applies them."""

from collections.abc import Callable, Iterable, Iterator
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
    """A Crawl-delay in seconds. `capped`: it is so long that crawlers may cap it; this service does not."""

    seconds: float
    line: int
    capped: bool


class RequestRateOut(BaseModel):
    """A Request-rate line: `documents` in `seconds`, in its window, or all day if that is null."""

    documents: int
    seconds: int
    interval: float
    window: WindowOut | None
    line: int


class VisitTimeOut(WindowOut):
    """A Visit-time line: one window of the UTC day in which visits are welcome."""

    line: int


class DeclaredOut(BaseModel):
    """The pace that a group declares, in file order. Lines that cannot be parsed appear only in `warnings`."""

    crawl_delays: list[DelayOut]
    request_rates: list[RequestRateOut]
    visit_times: list[VisitTimeOut]


class PathUsageOut(BaseModel):
    """The Content-Usage of paths that match `path`, by category; `*` matches all. The first match counts."""

    path: str
    content_usage: dict[str, str]


class GroupUsageOut(BaseModel):
    """The preferences for the use of fetched pages. Content-Signal applies to all paths.

    `ai_training` lists the AllowAITraining and DisallowAITraining lines; the first match counts.
    """

    paths: list[PathUsageOut]
    content_signal: dict[str, str]
    ai_training: list[RuleOut]


class RobotsGroupOut(BaseModel):
    """A group, its rules in file order, and its other lines (`members`)."""

    agents: list[str]
    line: int
    rules: list[RuleOut]
    members: list[ExtensionOut]
    declared: DeclaredOut
    usage: GroupUsageOut | None


class ReaderOut(BaseModel):
    """What the file means for the requested agent, other than its rules.

    `group` is the first group that applies to it. `schedule` is the pace over the UTC day in this dialect. `visits`
    are the windows in which visits are welcome, null if no line limits them.
    """

    agent: str
    policy: bool = Field(description="Whether the token only states a preference: no crawler fetches under this name.")
    exempt: bool = Field(description="Whether its vendor says that it ignores robots.txt, always or at times.")
    group: GroupOut | None
    crawl_delay: DelayOut | None
    schedule: list[SpanOut]
    visits: list[WindowOut] | None
    usage: GroupUsageOut | None


class FactsOut(BaseModel):
    """The facts of the fetch."""

    robots: RobotsOut


class RobotsFileOut(FactsOut):
    """The cached robots.txt of an origin, grouped as `dialect` reads it; `text` is null if there is no file."""

    dialect: str
    text: str | None = None
    groups: list[RobotsGroupOut] = []
    reader: ReaderOut | None = Field(None, description="Present if an agent was named and there is a file.")
    sitemaps: list[str] = []
    licenses: list[str] = Field([], description="Values of License lines (RSL), which bind every crawler.")
    extensions: list[ExtensionOut] = []
    warnings: list[WarningOut] = []


def facts_out(origin: Origin, file: CachedFile) -> FactsOut:
    """The facts of the fetch, without the file."""
    return FactsOut(robots=robots_out(origin, file.cached))


def content_type_of(file: CachedFile) -> str | None:
    """The Content-Type of the response that held the file."""
    snapshot = file.cached.snapshot
    if snapshot is not None and isinstance(snapshot.access, Successful):
        return snapshot.access.content_type
    return None


def robots_file_texts(
    origin: Origin, file: CachedFile, dialect: Dialect, agent: Agent | None, warnings: str
) -> Iterator[str]:
    """The JSON of RobotsFileOut in pieces: a hostile file takes seconds. `warnings` is its member of that name."""
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
    yield f'],"warnings":{warnings}}}'


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
        paths=[
            PathUsageOut(path=path, content_usage={name: it.value for name, it in stated.items()})
            for path, stated in terms.by_path
        ],
        content_signal={name: it.value for name, it in terms.signals.items()},
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
