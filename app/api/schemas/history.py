"""The answers of `/v1/robots/history` and `/v1/robots/diff`: versions, and what changed from one to another."""

from typing import NamedTuple

from pydantic import BaseModel, Field

from app.api.schemas.answers import RuleOut, SpanOut
from app.api.serialize import directive_out, instant, robots_out, rule_out, spans_out
from app.cache.freshness import Snapshot
from app.cache.robots_cache import CacheResult, Source
from app.history.diff import AgentsChange, Changes, PathChange
from app.history.versions import Version
from app.origin import Origin
from app.robots.access import Successful
from app.robots.dialects import Dialect
from app.robots.verdict import Permission, Reason, Verdict


class VersionOut(BaseModel):
    """What was held `from` an instant `until` another, null for now; its `id` begins the SHA-256 of a file's octets.

    Fetches found it from the first of these instants up to `seen` at least. In place of a file it may be that there
    was none, or that the origin was unreachable with no copy to stand in.
    """

    id: str
    outcome: str = Field(description="successful, unavailable, unreachable, challenge or blocked_address")
    status: int | None
    cause: str | None
    size: int | None = Field(description="Octets of the file; null where there was none.")
    truncated: bool
    final_url: str | None
    from_: str = Field(serialization_alias="from")
    seen: str
    until: str | None
    text: str | None = Field(None, description="The file; left out unless this version was asked for by its id.")


class HistoryOut(BaseModel):
    """The versions of an origin's robots.txt, the newest first; the one that was asked for, where one was."""

    url: str
    versions: list[VersionOut]


class SideOut(BaseModel):
    """What one of the two says of a path."""

    verdict: Permission
    reason: Reason
    rule: RuleOut | None


class PathChangeOut(BaseModel):
    """A path that the two decide differently about."""

    path: str
    gained: bool | None = Field(description="true: it became open; false: it was open; null: it was and is not.")
    before: SideOut
    after: SideOut


class RatesChangeOut(BaseModel):
    """The rates of the whole UTC day."""

    before: list[SpanOut]
    after: list[SpanOut]


class AgentsChangeOut(BaseModel):
    """What changed for these agents, all alike: rules that speak for them, paths drawn from those, rates."""

    agents: list[str] = Field(description="As the files name them; `*` are all whom they do not name.")
    added: list[RuleOut]
    removed: list[RuleOut]
    paths: list[PathChangeOut]
    rates: RatesChangeOut | None = Field(description="null where they are the same.")


class DiffOut(BaseModel):
    """What changed between two versions as `dialect` reads them, for each agent that either names, and for `*`.

    From every pattern of either file one path is drawn that it matches, and judged by both. Agents for whom nothing
    changed are left out.
    """

    url: str
    dialect: str
    from_: VersionOut = Field(serialization_alias="from")
    to: VersionOut
    agents: list[AgentsChangeOut]
    sitemaps_added: list[str]
    sitemaps_removed: list[str]
    truncated: bool = Field(description="Not everything was compared, or is told: it would have been too much.")


class ReadVersion(NamedTuple):
    """A version, what was held then, and the instant (Unix seconds) at which another took its place; None for now."""

    version: Version
    snapshot: Snapshot
    until: int | None


def version_out(origin: Origin, found: ReadVersion, text: str | None = None) -> VersionOut:
    """The version, with its text where that is to be told."""
    version, snapshot, until = found
    facts = robots_out(origin, CacheResult(snapshot, None, Source.HISTORY))
    return VersionOut(
        id=version.id,
        outcome=facts.outcome or "",
        status=facts.status,
        cause=facts.cause,
        size=len(snapshot.access.body) if isinstance(snapshot.access, Successful) else None,
        truncated=facts.truncated,
        final_url=facts.final_url,
        from_=instant(version.first_seen),
        seen=instant(version.last_seen),
        until=None if until is None else instant(until),
        text=text,
    )


def diff_out(origin: Origin, before: ReadVersion, after: ReadVersion, dialect: Dialect, found: Changes) -> DiffOut:
    """What `dialect` found to have changed."""
    return DiffOut(
        url=origin.robots_url,
        dialect=dialect.name,
        from_=version_out(origin, before),
        to=version_out(origin, after),
        agents=[_agents_out(change) for change in found.agents],
        sitemaps_added=list(found.sitemaps_added),
        sitemaps_removed=list(found.sitemaps_removed),
        truncated=found.truncated,
    )


def _agents_out(change: AgentsChange) -> AgentsChangeOut:
    rates = None
    if change.rates is not None:
        rates = RatesChangeOut(before=spans_out(change.rates.before), after=spans_out(change.rates.after))
    return AgentsChangeOut(
        agents=list(change.agents),
        added=[directive_out(rule) for rule in change.added],
        removed=[directive_out(rule) for rule in change.removed],
        paths=[_path_out(it) for it in change.paths],
        rates=rates,
    )


def _path_out(change: PathChange) -> PathChangeOut:
    path, before, after = change
    return PathChangeOut(path=path, gained=change.gained, before=_side_out(before), after=_side_out(after))


def _side_out(verdict: Verdict) -> SideOut:
    return SideOut(verdict=verdict.permission, reason=verdict.reason, rule=rule_out(verdict))
