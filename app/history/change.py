"""A change of an origin's robots.txt, as the feed of changes reports it: for which agents, which paths, which rates."""

from collections.abc import Iterable
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from app.cache.freshness import Snapshot
from robots_core.content import digest, id_of
from robots_core.diff import AgentsChange, changes
from robots_core.file import File
from robots_core.origin import Origin

CHANGE_WORK = 100_000
"""What the comparison of two files may cost, as for `changes`; what is beyond that is left out."""

CHANGE_BYTES = 4096
"""Bytes of JSON for one change."""

NAMED_AGENTS, PATHS, PATH_LENGTH = 20, 3, 200
"""Agents that are named, sample paths, and characters of a path, for agents with the same changes."""

_HEAD: Final = 600  # bytes for all but the agents: an origin's URL has at most 273


class ChangedAgents(BaseModel):
    """What changed for agents that share the same changes.

    `*` stands for all that obey the group for `*` and have no other, by none of the tokens of their chain. Known
    crawlers that go by the group of another, as YandexBot goes by Yandex's, are named; one of AGENTS_FILE is found
    under the token that it goes by.
    """

    agents: list[str] = Field(description="The first of them: as written in the files, then those that go by these.")
    more_agents: int = 0
    lost: list[str] = Field(description="Sample paths that were allowed before and are not any more.")
    lost_paths: int = Field(
        description="How many such paths were found: one or two are tried for each pattern of either file."
    )
    gained: list[str] = Field(description="Sample paths that are allowed now and were not before.")
    gained_paths: int = 0
    rates: bool = Field(description="Whether their crawl rates changed.")


class Change(BaseModel):
    """One change of an origin's robots.txt. `GET /v1/robots/diff` has all of it."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    url: str = Field(description="The URL of the robots.txt.")
    profile: str | None = Field(None, description="The fetch profile that sees this file; null for the default one.")
    from_: str = Field(alias="from", description="The id of the version that ended.")
    to: str | None = Field(description="The id of the version that followed; null if the file was purged.")
    agents: list[ChangedAgents] = Field(description="By RFC 9309; empty if no verdict and no rate changed.")
    truncated: bool = Field(description="Whether limits left out some agents or paths.")


def change_of(origin: Origin, before: Snapshot, after: Snapshot | None, *, forbidden: bool = False) -> Change:
    """Compare the last snapshot of a version with one of the next. `forbidden` is as for judge."""
    url, ended = origin.robots_url, id_of(digest(before.access))
    if after is None:
        return Change(url=url, profile=origin.profile, from_=ended, to=None, agents=[], truncated=False)
    found = changes(File(before.access), File(after.access), forbidden=forbidden, work=CHANGE_WORK)
    agents, left_out = _fitting(map(_changed, found.agents))
    return Change(
        url=url,
        profile=origin.profile,
        from_=ended,
        to=id_of(digest(after.access)),
        agents=agents,
        truncated=found.truncated or left_out,
    )


def _changed(change: AgentsChange) -> ChangedAgents:
    lost = [path.path for path in change.paths if path.gained is False]
    gained = [path.path for path in change.paths if path.gained]
    return ChangedAgents(
        agents=list(change.agents[:NAMED_AGENTS]),
        more_agents=max(0, len(change.agents) - NAMED_AGENTS),
        lost=[path for path in lost if len(path) <= PATH_LENGTH][:PATHS],
        lost_paths=len(lost),
        gained=[path for path in gained if len(path) <= PATH_LENGTH][:PATHS],
        gained_paths=len(gained),
        rates=change.rates is not None,
    )


def _fitting(agents: Iterable[ChangedAgents]) -> tuple[list[ChangedAgents], bool]:
    """The first agents with a change of verdict or rate that fit into CHANGE_BYTES, and whether others do not."""
    room = CHANGE_BYTES - _HEAD
    fitting: list[ChangedAgents] = []
    for changed in agents:
        if not (changed.lost_paths or changed.gained_paths or changed.rates):
            continue
        room -= len(changed.model_dump_json()) + 1
        if room < 0:
            return fitting, True
        fitting.append(changed)
    return fitting, False
