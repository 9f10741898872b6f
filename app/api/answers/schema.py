"""The JSON schemas of answers, as OpenAPI describes them. Instants are RFC 3339 in UTC, durations seconds."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from app.cache.result import Source
from app.edge.facts import EdgeState
from app.overrides.table import OverrideSource
from robots_core.purposes.judge import PurposeState
from robots_core.purposes.policy import Purpose
from robots_core.robots.verdict import Permission, Reason

VERSION_TEXT = (
    "The id of the version of robots.txt in the history: the first 16 hexadecimal digits of the SHA-256 of its bytes, "
    "or of the fact that there is no file. Null if the fetch failed or has not ended."
)


def is_none(value: object) -> bool:
    """Whether to leave the member out."""
    return value is None


class RuleOut(BaseModel):
    """A rule: its pattern as written, and its line in the file, counted from 1."""

    directive: str
    pattern: str
    line: int


class RuleTextOut(RuleOut):
    """The rule that decided; its pattern and text are cut at 500 characters, and then end with an ellipsis."""

    text: str = Field(description="The line as written, without surrounding whitespace and comment.")


class GroupLineOut(BaseModel):
    """The group that applies: the `token` that selected it, and the `line` that it begins at."""

    token: str
    line: int


class GroupOut(BaseModel):
    """The group that applies: the `token` that selected it, and its user-agent lines as written (`agents`)."""

    token: str
    agents: list[str] = Field(description="The first of them, up to 4 KiB of JSON.")
    more_agents: int = Field(0, description="How many more user-agent lines the group has.")
    line: int


class WindowOut(BaseModel):
    """A daily window in UTC, from `start` (inclusive) to `end` (exclusive), as HH:MM."""

    start: str
    end: str


class RateOut(BaseModel):
    """How fast this agent may fetch from this origin now: one document every `interval` seconds.

    The line declares `documents` per `seconds`, an interval of `declared_interval`; `interval` is within the limits of
    the dialect. The rate holds until `valid_until`, or if that is null, for as long as the file does.
    """

    interval: float
    documents: int
    seconds: float
    declared_interval: float
    source: str = Field(description="request-rate, crawl-delay or override. An override has no line.")
    line: int | None
    inherited: bool = Field(
        description="Whether the line is in the group for * though the agent has a group of its own, as with bingbot."
    )
    window: WindowOut | None
    valid_until: str | None


class NextRateOut(BaseModel):
    """The next change of the rate, such as the beginning of a limit where none is in force."""

    at: str = Field(description="RFC 3339 instant of the change; the `valid_until` of a rate in force.")
    interval: float | None = Field(description="Seconds from one document to the next from then on; null for no limit.")


class VisitOut(BaseModel):
    """Visit-time: whether visits are welcome now. It never changes the verdict."""

    now: bool
    next_open: str | None
    valid_until: str | None


class UsageLinesOut(BaseModel):
    """The line that states each category or purpose."""

    content_usage: dict[str, int]
    content_signal: dict[str, int]


class UsageOut(BaseModel):
    """The file's preferences for the use of the page, by category or purpose. They change no verdict by themselves."""

    content_usage: dict[str, str]
    content_signal: dict[str, str]
    more: int = Field(0, description="Further categories and purposes, beyond 2 KiB of JSON of each kind.")
    ai_training: RuleOut | None = Field(
        None, description="The AllowAITraining or DisallowAITraining line that decides for this URL, if any."
    )
    lines: UsageLinesOut


class PurposeOut(BaseModel):
    """Whether the site permits a purpose, and the directive and line that decided; null where none did."""

    state: PurposeState
    directive: str | None = Field(
        None,
        description="content-signal, content-usage, allowaitraining or disallowaitraining; disallow where the page may"
        " not be fetched at all.",
    )
    line: int | None = None


class MatchOut(RuleOut):
    """A rule that matched; its pattern is cut as that of the rule that decided."""

    length: int = Field(description="Bytes of the normalised pattern: the longest decides, and allow on a tie.")


class SpanOut(BaseModel):
    """A part of the UTC day, HH:MM to HH:MM, and its rate, without `valid_until`."""

    start: str
    end: str
    rate: RateOut | None


class SummaryOut(BaseModel):
    """Why the verdict is what it is."""

    summary: str = Field(
        description="One sentence: what decided; for a defer what failed, when, how often, and when to ask again."
    )


class ExplanationOut(SummaryOut):
    """The same in detail: how the group was found, every rule that matched, and the rates of the whole UTC day."""

    path: str = Field(description="The path and query that rules were matched against.")
    tokens: list[str] = Field(description="The tokens that groups are looked up by, in order.")
    group: str
    matched: int
    rules: list[MatchOut] = Field(
        description="The rules that matched, by precedence: the first one decided. At most 100, and 64 KiB of JSON."
    )
    schedule: list[SpanOut]


class OverrideOut(BaseModel):
    """The override that decided the verdict, or else the one that set the delay.

    A shadow override changes nothing. It appears only in explained answers that no other override changed.
    """

    id: str
    action: str = Field(description="allow, deny, robots or delay")
    scope: str
    reason: str
    expires_at: str | None
    shadow: bool
    source: OverrideSource = Field(description="Where it comes from: `PUT /v1/overrides/{id}`, or OVERRIDES_FILE.")


class RobotsOut(BaseModel):
    """The facts of the fetch behind the answer; null if nothing has been fetched yet."""

    url: str
    final_url: str | None = None
    outcome: str | None = Field(None, description="successful, unavailable, unreachable, challenge or blocked_address")
    status: int | None = None
    cause: str | None = Field(None, description="The last failure, if any.")
    detail: str | None = Field(None, description="What exactly failed, if it is known, in words for people.")
    fetched_at: str | None = None
    recheck_at: str | None = None
    age: int | None = None
    stale: bool = False
    failing_since: str | None = None
    truncated: bool = False
    source: Source = Source.NONE


class PriceOut(BaseModel):
    """What a 402 asked for a page: its `crawler-price`, as the site wrote it."""

    text: str
    reported_at: str
    url: str | None = Field(description="The page, if the reporter named it and it is not long.")


class EdgeOut(BaseModel):
    """Pages of the origin that were refused to the agent, as callers reported by permits since its last success there.

    A fact beside the verdict, which it never changes. It is forgotten 7 days after the last report.
    """

    state: EdgeState = Field(description="priced: the newest status was 402; refused: it was 401, 403 or 451.")
    status: int = Field(description="The newest status.")
    since: str = Field(description="When the first refusal was reported.")
    reported_at: str = Field(description="When the newest refusal was reported.")
    count: int = Field(description="How many were reported.")
    price: PriceOut | None = Field(description="The newest price that a 402 named.")


class NoteOut(BaseModel):
    """Something that the caller should know about the answer."""

    code: str = Field(
        description="agent-unnamed, agent-misspelt, agent-never-named, noindex-unreachable or tags-unread"
    )
    message: str


class RowOut(BaseModel):
    """One decision: the verdict, why, and how fast. `allowed` is true only for the verdict `allow`."""

    url: str
    agent: str
    dialect: str
    verdict: Permission
    allowed: bool
    reason: Reason
    partial: bool = Field(
        description="Whether lines beyond the first 512,000 bytes of the file, which are not read, could change the "
        "verdict."
    )
    explanation: SummaryOut = Field(description="Why, in a sentence.")
    rule: RuleTextOut | None
    group: GroupLineOut | None = Field(description="The group that applies; null if there is none, or no file.")
    rate: RateOut | None
    next_rate: NextRateOut | None = Field(description="How the rate changes next; null if it does not.")
    retry_at: str | None = Field(description="When to ask again, if the verdict is defer.")
    notes: list[NoteOut] | None = Field(
        None,
        exclude_if=is_none,
        description="How the agent was read, where that may surprise; absent otherwise.",
    )
    purposes: dict[Purpose, PurposeOut] | None = Field(
        None,
        exclude_if=is_none,
        description="Whether the site permits each purpose of the question; absent without purposes.",
    )


class ExplainedRowOut(RowOut):
    """One decision: why, in detail, and what else the file states for the agent."""

    explanation: ExplanationOut | SummaryOut = Field(
        description="Why, in a sentence; in detail if explain is true and there is a file."
    )
    group: GroupOut | None  # type: ignore[assignment] # with its user-agent lines
    crawl_delay: float | None
    visit: VisitOut | None
    usage: UsageOut | None


class AnswerOut(ExplainedRowOut):
    """One decision, with the facts that it rests on. `allowed` is true only for the verdict `allow`."""

    override: OverrideOut | None
    sitemaps: list[str] = Field(description="The first of them, up to 32 KiB of JSON; GET /v1/robots has them all.")
    more_sitemaps: int = Field(description="The number of further sitemaps in the file.")
    licenses: list[str] = Field(
        description="The file's License URLs (RSL), which bind every crawler; the first, up to 4 KiB of JSON."
    )
    version: str | None = Field(description=VERSION_TEXT)
    robots: RobotsOut
    edge: EdgeOut | None = Field(
        None,
        exclude_if=is_none,
        description="The refusals that callers reported for this origin and agent; absent if there are none.",
    )


class _SelectedOut(BaseModel):
    """The members of an answer that the parameter `fields` names; no others."""

    model_config = ConfigDict(extra="forbid")


_any_member: Any = {
    name: (field.annotation, Field(None, description=field.description))
    for name, field in AnswerOut.model_fields.items()
}
SelectedOut = create_model("SelectedOut", __base__=_SelectedOut, __doc__=_SelectedOut.__doc__, **_any_member)


class ExtensionOut(BaseModel):
    """A line that is reported but decides nothing: Host, Clean-param, Noindex, Comment."""

    key: str
    value: str
    line: int


class ProblemOut(BaseModel):
    """An error (RFC 9457); `parameter` and `value` name the invalid input."""

    type: str
    title: str
    status: int
    detail: str
    parameter: str | None = None
    value: str | float | bool | None = None
    retry_after: int | None = Field(None, description="Seconds after which to ask again, as in the header.")
    line: int | None = Field(None, description="Of a stream: the number of the request's line that failed.")
    earliest: str | None = Field(None, description="Of no-version: the instant of the earliest stored version, if any.")
    request_id: str | None = Field(None, description="Of an unexpected error: its request id in the service's log.")


class RefusalOut(ProblemOut):
    """Of GET /v1/check: why the page may not be fetched now, as in an answer of GET /v1/allowed.

    `detail` is the summary. A problem without `verdict` says why there is no decision.
    """

    verdict: Permission | None = None
    reason: Reason | None = None
    agent: str | None = None
    rule: RuleTextOut | None = None
    override: OverrideOut | None = None
    retry_at: str | None = None
    version: str | None = None
