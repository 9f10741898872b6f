"""The answer of `GET /v1/robots`: a whole file, with rates and usage as declared and as one reader applies them."""

from pydantic import BaseModel, Field

from app.api.answers.schema import (
    VERSION_TEXT,
    ExtensionOut,
    GroupOut,
    RobotsOut,
    RuleOut,
    SpanOut,
    WindowOut,
)
from app.api.answers.serialize import facts_of, robots_out
from app.decisions.evaluate import CachedFile
from robots_core.content import version_id
from robots_core.lint.advice import Advice
from robots_core.origin import Origin
from robots_core.robots.access import Fetched, NotModified, Successful
from robots_core.times import instant


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
    version: str | None = Field(description=VERSION_TEXT)


class ObservationOut(BaseModel):
    """What the service read from a copy that a caller sent."""

    version: str | None = Field(description=VERSION_TEXT)
    outcome: str = Field(description="successful, unavailable, unreachable or challenge")
    cause: str | None
    observed_at: str
    in_use: bool = Field(
        description="Whether it decides from now on: not if the service knows a later answer, or it is older than 30 "
        "days. The history has it then."
    )


class IngestedOut(FactsOut):
    """The facts of the file that is in use now, and those of the copy that was sent."""

    ingested: ObservationOut


class RobotsFileOut(FactsOut):
    """The cached robots.txt of an origin, grouped as `dialect` reads it; `text` is null if there is no file."""

    dialect: str
    text: str | None = None
    groups: list[RobotsGroupOut] = []
    reader: ReaderOut | None = Field(None, description="Present if an agent was named and there is a file.")
    sitemaps: list[str] = []
    licenses: list[str] = Field([], description="Values of License lines (RSL), which bind every crawler.")
    extensions: list[ExtensionOut] = []
    warnings: list[Advice] = []


def facts_out(origin: Origin, file: CachedFile) -> FactsOut:
    """The facts of the fetch, without the file."""
    return FactsOut(robots=robots_out(origin, file.cached), version=file.version)


def ingested_out(origin: Origin, file: CachedFile, fetched: Fetched, at: float, *, in_use: bool) -> IngestedOut:
    """The facts of the file in use, and what was read from the copy that a caller fetched at `at` (Unix seconds)."""
    access = fetched.access
    if isinstance(access, NotModified):
        raise TypeError("a caller's copy is unconditional")
    outcome, _, cause = facts_of(access)
    sent = ObservationOut(
        version=version_id(access), outcome=outcome, cause=cause, observed_at=instant(at), in_use=in_use
    )
    return IngestedOut(**dict(facts_out(origin, file)), ingested=sent)


def content_type_of(file: CachedFile) -> str | None:
    """The Content-Type of the response that held the file."""
    snapshot = file.cached.snapshot
    if snapshot is not None and isinstance(snapshot.access, Successful):
        return snapshot.access.content_type
    return None
