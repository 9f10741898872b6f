"""The answers of `/v1/robots/history` and `/v1/robots/diff`: versions, and what changed from one to another."""

from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from app.api.answers.schema import RuleOut, SpanOut
from app.api.answers.serialize import robots_out
from app.cache.freshness import Snapshot
from app.cache.result import CacheResult, Source
from app.history.change import Change
from app.history.versions import Version
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from robots_core.robots.verdict import Permission, Reason
from robots_core.times import instant


class VersionOut(BaseModel):
    """A stored version: in force `from` one instant `until` another, null if it still is.

    Fetches confirmed it up to `seen`. A version is a file, or the fact that there was none, or that the origin was
    unreachable and no copy was left. `id` is the start of the SHA-256 of a file's bytes.
    """

    id: str
    outcome: str = Field(description="successful, unavailable, unreachable, challenge or blocked_address")
    status: int | None
    cause: str | None
    size: int | None = Field(description="Bytes of the file; null if there was none.")
    truncated: bool
    final_url: str | None
    from_: str = Field(serialization_alias="from")
    seen: str
    until: str | None
    source: Literal["fetched", "ingested"] = Field(description="Who got it last: the service, or a caller who sent it.")
    text: str | None = Field(None, description="The file; only with `version`.")


class HistoryOut(BaseModel):
    """The versions of an origin's robots.txt, newest first; with `version`, only that one."""

    url: str
    versions: list[VersionOut]


class SideOut(BaseModel):
    """One version's decision about a path."""

    verdict: Permission
    reason: Reason
    rule: RuleOut | None


class PathChangeOut(BaseModel):
    """A path that the two versions decide differently."""

    path: str
    gained: bool | None = Field(description="true: it became allowed; false: it ceased to be; null: neither.")
    before: SideOut
    after: SideOut


class RatesChangeOut(BaseModel):
    """The rates of the whole UTC day."""

    before: list[SpanOut]
    after: list[SpanOut]


class AgentsChangeOut(BaseModel):
    """What changed for agents that share the same changes: their rules, sample paths, and rates."""

    agents: list[str] = Field(
        description="As written in the files, then known crawlers that go by the group of these, as YandexBot goes by"
        " Yandex's; `*` stands for all others that obey the group for `*`."
    )
    added: list[RuleOut]
    removed: list[RuleOut]
    paths: list[PathChangeOut]
    rates: RatesChangeOut | None = Field(description="null if they are the same.")


class DiffOut(BaseModel):
    """What changed between two versions as `dialect` reads them, for each agent that either names, and for `*`.

    For every pattern in either file, a path at its end, and one behind it where it need not match there, are decided by
    both; so are paths where patterns meet, if no other changed alike. Agents without changes are left out.
    """

    url: str
    dialect: str
    from_: VersionOut = Field(serialization_alias="from")
    to: VersionOut
    agents: list[AgentsChangeOut]
    sitemaps_added: list[str]
    sitemaps_removed: list[str]
    truncated: bool = Field(description="Whether the limits of a request cut the comparison or its answer short.")


class FileChangeOut(Change):
    """A line of the feed of changes."""

    id: str = Field(description="Grows from change to change.")
    at: str = Field(description="When the change was found.")


class ReadVersion(NamedTuple):
    """A version, its snapshot, and the instant (Unix seconds) of the next version; None for the current one."""

    version: Version
    snapshot: Snapshot
    until: int | None


def version_out(origin: Origin, found: ReadVersion, text: str | None = None) -> VersionOut:
    """The version, with `text` if given."""
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
        source="fetched" if snapshot.ingested is None else "ingested",
        text=text,
    )
