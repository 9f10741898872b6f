"""The parameters of a question, and how each is read: the one place that a new parameter is added to.

Every route and command that decides questions reads them by a model of this module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticKnownError

from app.decisions.evaluate import Question
from robots_core.agents.directory import AgentDirectory, UnknownCategory
from robots_core.origin import BadUrl, Target, read_target
from robots_core.purposes.policy import PURPOSES, Purpose, PurposePolicy, read_purposes
from robots_core.robots.agents import Agent, BadAgent, first_of
from robots_core.robots.dialects import DIALECTS, Dialect
from robots_core.times import read_instant, rfc3339

AGENTS = 16
"""Agents that one question may name."""

WAIT, WAIT_LIMIT = 10.0, 60
"""Seconds that an answer may wait for a fetch: by default, and at most."""

MAX_AGE_LIMIT = 10**9
"""Seconds of the largest max_age."""

URL_TEXT = "The page's URL, absolute, http or https, at most 16 KiB."
AGENT_TEXT = "A product token or a User-Agent header, or several: the first that has a group counts."
DIALECT_TEXT = "rfc9309, google, seznam, draft1996 or v2; by default the agent's own."
MAX_AGE_TEXT = "Maximum age of the copy in seconds; an older one is fetched again, but not within MIN_REFETCH_SECONDS."
"""Descriptions that other models and queries share."""


class BadQuestion(Exception):
    """A parameter whose value cannot be read. The text says why, in a sentence, and what to send."""

    def __init__(self, parameter: str, value: object, text: str) -> None:
        super().__init__(text)
        self.parameter = parameter
        self.value = value


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise PydanticKnownError("string_type")
    return value


UrlText: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "http-url"})]
AgentText: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "crawler"})]
DialectName: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "enum": list(DIALECTS)})]
InstantText: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "instant"})]
"""Texts that are read once the model is validated.

The formats are our own: the absolute http or https URL of a page; a product token or a User-Agent header; an RFC 3339
instant.
"""

SeveralAgents: TypeAlias = Annotated[list[AgentText], Field(min_length=1, max_length=AGENTS, fail_fast=True)]
Agents: TypeAlias = Annotated[
    SeveralAgents, BeforeValidator(_as_list, json_schema_input_type=AgentText | SeveralAgents)
]
_SeveralPurposes: TypeAlias = Annotated[list[Purpose], Field(min_length=1, max_length=len(PURPOSES), fail_fast=True)]

MaxAge: TypeAlias = Annotated[float, Field(ge=0, le=MAX_AGE_LIMIT)]
Wait: TypeAlias = Annotated[float, Field(ge=0, le=WAIT_LIMIT)]

Purposes: TypeAlias = Annotated[
    Annotated[_SeveralPurposes, BeforeValidator(_as_list, json_schema_input_type=Purpose | _SeveralPurposes)] | None,
    Field(
        description="What the page is wanted for: search, ai-input, ai-train; by API key and settings. Answered under "
        "`purposes`."
    ),
]
"""The purposes of a question; None leaves them to the caller's policy."""


@dataclass(slots=True)
class Asking:
    """What questions take from their request: who asks, what is known, and the defaults of a batch."""

    known: AgentDirectory
    now: Callable[[], datetime]
    policy: PurposePolicy = field(default_factory=PurposePolicy)
    caller: str = ""
    max_age: float | None = None
    wait: float = WAIT
    _plain: dict[str, tuple[Any, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def question(
        self,
        url: str,
        agent: str | Sequence[str],
        dialect: str | None = None,
        max_age: float | None = None,
        wait: float | None = None,
        purpose: Sequence[Purpose] | None = None,
        *,
        enforce: bool = False,
    ) -> Question:
        """The question with these parameters, of which None were not given. Raises BadQuestion."""
        reader = agent_from(agent, self.known)
        return Question(
            target_from(url),
            reader,
            dialect_from(dialect, reader),
            None,
            self.max_age if max_age is None else max_age,
            self.wait if wait is None else wait,
            asked_policy(purpose, self.policy, enforce=enforce),
            None,
            self.caller,
        )

    def plain(self, url: str, agent: str) -> tuple[Any, ...]:
        """All but the target of the question without further parameters. Raises BadQuestion.

        Most items of a request are such, and differ in their URLs alone: the agent is read once for all of them.
        """
        rest = self._plain.get(agent)
        if rest is None:
            rest = self._plain[agent] = self.question(url, agent)[1:]
        return rest


class QuestionNowIn(BaseModel):
    """A question about now. In a query, `agent` and `purpose` are repeated for several."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    url: UrlText = Field(description=URL_TEXT)
    agent: Agents = Field(description=AGENT_TEXT)
    dialect: DialectName | None = Field(None, description=DIALECT_TEXT)
    max_age: MaxAge | None = Field(None, description=MAX_AGE_TEXT)
    wait: Wait | None = Field(
        None, description=f"Seconds that the answer may wait for a fetch; by default {WAIT:g}, or those of the batch."
    )
    purpose: Purposes = None
    enforce: bool = Field(
        False,
        description="Whether a purpose that the site refuses closes the page. By API key and settings it may anyway.",
    )

    def question(self, asking: Asking) -> Question:
        """The question. Raises BadQuestion."""
        return asking.question(
            self.url, self.agent, self.dialect, self.max_age, self.wait, self.purpose, enforce=self.enforce
        )


class QuestionIn(QuestionNowIn):
    """A question, by default about now."""

    at: InstantText | None = Field(None, description="RFC 3339 instant at which rates are evaluated; by default now.")
    as_of: InstantText | None = Field(
        None,
        description="RFC 3339 instant in the past: answer, rates included, from the version stored then; never fetch.",
    )

    def question(self, asking: Asking) -> Question:
        """The question. Raises BadQuestion."""
        question = super().question(asking)
        if self.at is None and self.as_of is None:
            return question
        as_of = None if self.as_of is None else past_from(self.as_of, asking.now())
        return question._replace(at=instant_from(self.at), as_of=as_of)


def target_from(url: str, parameter: str = "url") -> Target:
    """The target of a URL. Raises BadQuestion, as do all readers here."""
    try:
        return read_target(url)
    except BadUrl as error:
        raise BadQuestion(parameter, url, str(error)) from None


def agent_from(names: str | Sequence[str], known: AgentDirectory, parameter: str = "agent") -> Agent:
    """One agent; several names make one agent that is looked up by each in order."""
    if isinstance(names, str):
        try:
            return known.read(names)
        except BadAgent as error:
            raise BadQuestion(parameter, names, str(error)) from None
    return first_of([agent_from(name, known, parameter) for name in names])


def agents_from(name: str, known: AgentDirectory, parameter: str) -> Sequence[Agent]:
    """One agent, or all known crawlers of a category for `@category`."""
    try:
        return [agent_from(token, known, parameter) for token in known.expand(name)]
    except UnknownCategory as error:
        raise BadQuestion(parameter, name, str(error)) from None


def dialect_from(name: str | None, agent: Agent, parameter: str = "dialect") -> Dialect:
    """The dialect of that name, or the agent's own for None (spec Q6)."""
    return DIALECTS[agent.dialect] if name is None else dialect_named(name, parameter)


def dialect_named(name: str, parameter: str = "dialect") -> Dialect:
    """The dialect of that name."""
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise BadQuestion(parameter, name, f"Unknown dialect {name[:100]!r}. Choose one of: {', '.join(DIALECTS)}.")
    return dialect


def instant_from(text: str | None, parameter: str = "at") -> datetime | None:
    """Parse an RFC 3339 instant between the years 1970 and 9998; None for None."""
    return None if text is None else _instant(text, parameter)


def past_from(text: str, now: datetime, parameter: str = "as_of", ahead: float = 0.0) -> datetime:
    """Parse an RFC 3339 instant that is not in the future; one that is so by up to `ahead` seconds counts as now.

    So does one of this second, as clocks differ by some milliseconds.
    """
    at = _instant(text, parameter)
    if at.replace(microsecond=0) > now + timedelta(seconds=ahead):
        raise BadQuestion(parameter, text, f"{text!r} is in the future; the service's time is {rfc3339(now)}.")
    return min(at, now)


def _instant(text: str, parameter: str) -> datetime:
    at = read_instant(text)
    if at is None:
        detail = f"{text[:100]!r} is not an RFC 3339 instant between 1970 and 9998, such as 2026-11-21T18:30:00Z."
        raise BadQuestion(parameter, text, detail)
    return at


def asked_policy(
    purposes: Sequence[Purpose] | None, caller: PurposePolicy, *, enforce: bool = False
) -> PurposePolicy | None:
    """The policy for a question of this caller, None without purposes; `enforce` makes it stricter."""
    asked = caller.purposes if purposes is None else tuple(purposes)
    return _policy(asked, enforce or caller.enforce) if asked else None


@lru_cache(256)
def _policy(purposes: tuple[Purpose, ...], enforce: bool) -> PurposePolicy:
    return PurposePolicy(read_purposes(purposes), enforce)
