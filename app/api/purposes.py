"""What a caller wants pages for: what the request says, else its API key, else the settings."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, TypeAlias

from fastapi import Request
from pydantic import BeforeValidator, Field

from app.api.json_bodies import as_list
from app.api.middleware.auth import key_of
from app.api.services import services_of
from app.purposes.policy import PURPOSES, Purpose, PurposePolicy, read_purposes

_DESCRIPTION = (
    "What the page is wanted for: search, ai-input, ai-train; by API key and settings. Answered under `purposes`."
)


_Several: TypeAlias = Annotated[list[Purpose], Field(min_length=1, max_length=len(PURPOSES))]

NamedPurposes: TypeAlias = Annotated[_Several | None, Field(description=_DESCRIPTION)]
"""The purposes of a question; None leaves them to the caller's policy."""

Purposes: TypeAlias = Annotated[
    _Several | None,
    BeforeValidator(as_list, json_schema_input_type=Purpose | _Several | None),
    Field(description=_DESCRIPTION),
]
"""The same as a member of JSON, where one purpose may stand without a list."""


def caller_policy(request: Request) -> PurposePolicy:
    """The policy of the caller: of its API key, else of the settings."""
    default = services_of(request).policy
    key = key_of(request.scope)
    return default if key is None else key.policy(default)


def asked_policy(purposes: Sequence[Purpose] | None, caller: PurposePolicy) -> PurposePolicy | None:
    """The policy for a question of this caller; None without purposes."""
    if purposes is None:
        return caller if caller.purposes else None
    return _policy(tuple(purposes), caller.enforce)


@lru_cache(256)
def _policy(purposes: tuple[Purpose, ...], enforce: bool) -> PurposePolicy:
    return PurposePolicy(read_purposes(purposes), enforce)
