"""`/v1/changes/groups` and `/v1/changes/acknowledgements`: groups of consumers of the feed of changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel, ConfigDict, Field

from app.api.json_bodies import JsonRoute, RequestModel
from app.api.middleware.auth import admin
from app.api.problems import Problem, bad_value, documented
from app.api.services import ServicesDep
from app.history.change_groups import GROUPS, NAME, ChangesMissed, TooManyGroups, UnknownGroup
from app.history.redis_changes import ChangeId, read_id

IDS = 1000
"""Changes of one acknowledgement: as many as an answer has."""

GROUP_PATTERN = f"^{NAME}$"
GROUP_TEXT = "The name of a group: up to 64 of a-z, 0-9 and '-', not '-' first."

_ACKNOWLEDGEMENTS = "/v1/changes/acknowledgements"

router = APIRouter(tags=["files"], route_class=JsonRoute)


class AcknowledgementIn(RequestModel):
    """The changes that a consumer has processed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    group: str = Field(pattern=GROUP_PATTERN, description=GROUP_TEXT)
    ids: list[str] = Field([], max_length=IDS, fail_fast=True, description="The ids of changes.")
    missed_before: str | None = Field(
        None, description="The `missed_before` of a 410. Send it once you have acted on it; the group then continues."
    )


class AcknowledgementOut(BaseModel):
    """The result of an acknowledgement."""

    acknowledged: int = Field(description="How many of the changes the group had leased; repeated ids count once.")


class ChangeGroupOut(BaseModel):
    """A group of consumers of the feed of changes."""

    name: str
    lag: int | None = Field(description="Changes that it has not leased yet; null until it has caught up once.")
    pending: int = Field(description="Changes that it has leased and not acknowledged.")
    idle: float | None = Field(description="Seconds since a consumer last asked; null if unknown.")


class ChangeGroupsOut(BaseModel):
    """All groups by name."""

    groups: list[ChangeGroupOut]


@router.post(_ACKNOWLEDGEMENTS, responses={**documented(404, 413, 422, 503)})
async def acknowledge_changes(services: ServicesDep, body: AcknowledgementIn) -> AcknowledgementOut:
    """Acknowledge changes that were leased to a group, so that none of its consumers is given them again.

    Ids of changes that were acknowledged before are ignored, so this may be repeated.
    """
    ids = [_id_from(f"ids[{at}]", text) for at, text in enumerate(body.ids)]
    missed_before = None if body.missed_before is None else _id_from("missed_before", body.missed_before)
    with group_problems(body.group):
        return AcknowledgementOut(acknowledged=await services.change_groups.acknowledge(body.group, ids, missed_before))


@router.get("/v1/changes/groups", responses={**documented(503)})
async def change_groups(services: ServicesDep) -> ChangeGroupsOut:
    """List the groups of consumers, and how far each is behind."""
    states = await services.change_groups.list()
    return ChangeGroupsOut(groups=[ChangeGroupOut(**state._asdict()) for state in states])


@router.delete("/v1/changes/groups/{name}", status_code=204, responses={**documented(403, 404, 422, 503)})
async def delete_change_group(
    services: ServicesDep,
    _operator: Annotated[str, Depends(admin)],
    name: Annotated[str, Path(pattern=GROUP_PATTERN, description=GROUP_TEXT)],
) -> None:
    """Delete a group of consumers, with its position and its leases."""
    if not await services.change_groups.delete(name):
        raise Problem(404, "no-group", f"No group is named {name!r}.")


@contextmanager
def group_problems(name: str) -> Iterator[None]:
    """Turn the errors of a group into problems."""
    try:
        yield
    except UnknownGroup:
        detail = (
            f"No group is named {name!r}: it never existed, was deleted, or the store lost it with changes that it had "
            "not read. Begin it with after=0, or with after=now."
        )
        raise Problem(404, "no-group", detail, parameter="group", value=name) from None
    except TooManyGroups:
        detail = f"There are {GROUPS} groups already. Let an operator delete one: DELETE /v1/changes/groups/{{name}}."
        raise Problem(409, "too-many-groups", detail, parameter="group", value=name) from None
    except ChangesMissed as error:
        raise _missed(name, error.oldest, exists=error.exists) from None


def _missed(name: str, oldest: ChangeId, *, exists: bool) -> Problem:
    if not exists:
        detail = (
            f"Changes that the new group {name!r} would begin with were removed; the oldest is {oldest}. Use after=0."
        )
        return Problem(410, "changes-removed", detail, parameter="group", value=name)
    detail = (
        f"Changes before {oldest} were removed, and the group {name!r} had not acknowledged all of them. Look at the "
        f"origins that matter again, then send this missed_before to POST {_ACKNOWLEDGEMENTS}, and the group continues."
    )
    return Problem(410, "changes-removed", detail, parameter="group", value=name, missed_before=str(oldest))


def _id_from(parameter: str, text: str) -> ChangeId:
    id_ = read_id(text)
    if id_ is None:
        detail = f"{text[:100]!r} is not the id of a change, such as 1790000000000-0."
        raise bad_value(parameter, text, detail)
    return id_
