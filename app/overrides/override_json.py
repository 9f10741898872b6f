"""Overrides as JSON objects: validated when an operator sends one, and again when the store returns it."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from app.files.validation import message, shown
from app.overrides.table import ActionName, Override
from robots_core.dates import END_OF_TIME
from robots_core.origin import Origin, read_suffix, read_target
from robots_core.robots.access import BODY_LIMIT, Successful
from robots_core.robots.agents import STAR, read_agent

REASON_LIMIT = 500
"""Characters of the longest reason."""

AGENTS_LIMIT = 32
"""Crawlers that one override may name."""

LONGEST_DELAY = 86_400.0

LARGEST_BUDGET = 1_000_000_000
"""Documents a day."""

_SCOPE_LIMIT = 400
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = "audit"  # GET /v1/overrides/audit is a route of its own


class BadOverride(ValueError):
    """An invalid override; `field` is the member at fault, `value` what it holds."""

    def __init__(self, field: str, value: object, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.value = value


def _read_scope(value: object) -> Origin | str:
    if not isinstance(value, str) or not 0 < len(value) <= _SCOPE_LIMIT:
        raise ValueError("expected an origin like https://www.example.com or a host suffix like example.com")
    if "://" not in value:
        return read_suffix(value)
    target = read_target(value)
    if target.path != "/" or any(mark in value for mark in "@?#"):
        raise ValueError("an origin has no user, no path and no query")
    return target.origin


def _read_token(value: str) -> str:
    agent = read_agent(value)
    if agent.token == STAR:
        raise ValueError("for all crawlers, leave agents out")
    if len(agent.names) > 1:
        raise ValueError("expected one crawler in each item")
    return agent.token.lower()


def _one_line(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("expected one line of printable text")
    return value


class OverrideMembers(BaseModel):
    """The members of an override; `expires_at` is in Unix seconds. Others are ignored: later releases may add some."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    scope: Annotated[Origin | str, PlainValidator(_read_scope)]
    agents: Annotated[list[Annotated[str, AfterValidator(_read_token)]], Field(max_length=AGENTS_LIMIT)] = []
    action: ActionName
    robots: str | None = Field(None, validate_default=True)
    delay: float | None = Field(None, gt=0, le=LONGEST_DELAY, validate_default=True)
    budget: int | None = Field(None, ge=1, le=LARGEST_BUDGET, validate_default=True)
    reason: Annotated[str, Field(max_length=REASON_LIMIT), AfterValidator(_one_line)]
    expires_at: float | None = Field(None, ge=0, le=END_OF_TIME)
    shadow: bool = False

    @field_validator("robots", "delay", "budget")
    @classmethod
    def _belongs_to_its_action(cls, value: object, info: ValidationInfo) -> object:
        action = info.data.get("action")
        if value is None and action == info.field_name:
            raise ValueError(f"the action {action!r} needs it")
        if value is not None and action != info.field_name:
            raise ValueError(f"it belongs to the action {info.field_name!r} only, so leave it out")
        return value

    @field_validator("shadow")
    @classmethod
    def _can_be_tried(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("action") == "budget":
            raise ValueError(
                "a budget changes no answer until it is used up, so there is nothing to count: leave it out"
            )
        return value

    @field_validator("robots")
    @classmethod
    def _fits_into_a_file(cls, value: str | None) -> str | None:
        try:
            size = len((value or "").encode())
        except UnicodeEncodeError:
            raise ValueError("a file cannot contain a lone surrogate") from None
        if size > BODY_LIMIT:
            raise ValueError(f"it has {size} bytes; at most {BODY_LIMIT} are read")
        return value

    def override(self, id_: str) -> Override:
        """The override with this id; raises BadOverride for an invalid id."""
        if not _ID.fullmatch(id_) or id_ == _RESERVED:
            detail = f"{id_[:80]!r} is not an override id: use 1 to 64 letters, digits, '.', '_' and '-', not 'audit'"
            raise BadOverride("id", id_, detail)
        return Override(
            id_,
            self.scope,
            tuple(dict.fromkeys(self.agents)),
            self.action,
            self.reason,
            self.expires_at,
            self.shadow,
            robots=None if self.robots is None else Successful(200, self.robots.encode(), content_type="text/plain"),
            delay=self.delay,
            budget=self.budget,
        )


def read_override(id_: str, members: Mapping[str, object]) -> Override:
    """Read an override from the members of OverrideMembers; BadOverride names the member at fault and its value."""
    try:
        return OverrideMembers.model_validate(members).override(id_)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    field, value = str(fault["loc"][0]), None if fault["type"] == "missing" else fault["input"]
    raise BadOverride(field, value, f"{field} is {shown(value)}: {message(fault)}")


def write_override(override: Override) -> dict[str, object]:
    """The members that `read_override` reads."""
    robots = override.robots
    return {
        "scope": override.scope_text,
        "agents": list(override.agents),
        "action": override.action,
        "robots": None if robots is None else robots.body.decode(),
        "delay": override.delay,
        "budget": override.budget,
        "reason": override.reason,
        "expires_at": override.expires_at,
        "shadow": override.shadow,
    }
