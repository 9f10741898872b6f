"""The JSON shapes of the answers, as the OpenAPI document describes them. Times are RFC 3339 in UTC, delays seconds."""

from pydantic import BaseModel, Field

from app.cache.robots_cache import Source
from app.robots.verdict import Permission, Reason


class RuleOut(BaseModel):
    """The rule that decided: its pattern as written, and the 1-based line of the file it stands in."""

    directive: str
    pattern: str
    line: int


class RuleTextOut(RuleOut):
    text: str = Field(description="The line as written, without outer blanks and comment.")


class GroupOut(BaseModel):
    """The group that was asked: `token` is what it was found by, `agents` are its user-agent lines as written."""

    token: str
    agents: list[str] = Field(description="The first of them, up to 4 KiB of JSON.")
    more_agents: int = Field(0, description="How many more user-agent lines the group has.")
    line: int


class WindowOut(BaseModel):
    """Every UTC day from `start`, inclusive, to `end`, exclusive, as HH:MM."""

    start: str
    end: str


class RateOut(BaseModel):
    """How fast this agent may fetch from this origin now: one document every `interval` seconds.

    `documents` per `seconds` are what the line declares; `declared_interval` is what they make before the dialect's
    clamp. The rate holds until `valid_until`, or for as long as the file does where that is null.
    """

    interval: float
    documents: int
    seconds: float
    declared_interval: float
    source: str = Field(description="request-rate, crawl-delay, or override, which stands in no line.")
    line: int | None
    window: WindowOut | None
    valid_until: str | None


class VisitOut(BaseModel):
    """Visit-time: whether visits are welcome now. It never changes the verdict."""

    now: bool
    next_open: str | None
    valid_until: str | None


class UsageOut(BaseModel):
    """What the file states about the use of the page, by category or purpose. It never changes the verdict."""

    content_usage: dict[str, str]
    content_signal: dict[str, str]
    more: int = Field(0, description="How many more categories and purposes are stated, past 2 KiB of JSON of either.")
    ai_training: RuleOut | None = Field(
        None, description="The AllowAITraining or DisallowAITraining line that decides for this URL, if any."
    )


class MatchOut(RuleOut):
    length: int = Field(description="Octets of the normalised pattern: the longest decides, allow before disallow.")


class SpanOut(BaseModel):
    """A stretch of the UTC day, HH:MM to HH:MM, and the rate in force in it, without its `valid_until`."""

    start: str
    end: str
    rate: RateOut | None


class ExplanationOut(BaseModel):
    """Why: how the group was found, every rule that matched, and the rates of the whole day."""

    path: str = Field(description="The path and query as rules were matched against them.")
    tokens: list[str] = Field(description="What groups were looked up by, in this order.")
    group: str
    matched: int
    rules: list[MatchOut] = Field(
        description="Those that matched, in order of precedence: the first decided. At most 100, and 64 KiB of JSON."
    )
    schedule: list[SpanOut]


class OverrideOut(BaseModel):
    """The operators' decision that had a say: what decided the verdict, else what set the delay.

    A shadow changes nothing, and is told of only where an explanation was asked for and nothing else had a say.
    """

    id: str
    action: str = Field(description="allow, deny, robots or delay")
    scope: str
    reason: str
    expires_at: str | None
    shadow: bool


class RobotsOut(BaseModel):
    """Facts of the fetch that the answer rests on; null where nothing has been fetched yet."""

    url: str
    final_url: str | None = None
    outcome: str | None = Field(None, description="successful, unavailable, unreachable, challenge or blocked_address")
    status: int | None = None
    cause: str | None = Field(None, description="What failed last, where something did.")
    fetched_at: str | None = None
    recheck_at: str | None = None
    age: int | None = None
    stale: bool = False
    failing_since: str | None = None
    truncated: bool = False
    source: Source = Source.NONE


class RowOut(BaseModel):
    """One decision. `allowed` is true only for the verdict `allow`."""

    url: str
    agent: str
    dialect: str
    verdict: Permission
    allowed: bool
    reason: Reason
    rule: RuleOut | None = None
    group: GroupOut | None = None
    rate: RateOut | None = None
    crawl_delay: float | None = None
    visit: VisitOut | None = None
    usage: UsageOut | None = None
    retry_at: str | None = Field(None, description="When to ask again; set where the verdict is defer.")
    explanation: ExplanationOut | None = Field(None, description="Where it was asked for and there is a file.")


class AnswerOut(RowOut):
    override: OverrideOut | None = None
    sitemaps: list[str] = Field([], description="The first of them, up to 32 KiB of JSON; GET /v1/robots has them all.")
    more_sitemaps: int = Field(0, description="How many more the file names.")
    robots: RobotsOut


class ExtensionOut(BaseModel):
    """A line that is reported and decides nothing: Host, Clean-param, Noindex, Comment."""

    key: str
    value: str
    line: int


class WarningOut(BaseModel):
    code: str
    line: int
    message: str


class ProblemOut(BaseModel):
    """An error as RFC 9457 writes it; `parameter` and `value` name what could not be read."""

    type: str
    title: str
    status: int
    detail: str
    parameter: str | None = None
    value: str | float | bool | None = None
    retry_after: int | None = Field(None, description="Of an item: seconds after which to ask about it again.")
    line: int | None = Field(None, description="Of a stream: which line of the request could not be answered.")
    earliest: str | None = Field(None, description="Of no-version: the instant of which something is known, if any.")
    request_id: str | None = Field(None, description="Of a mistake of the service: what its log has it under.")
