"""`GET /v1/robots/history` and `/v1/robots/diff`: earlier versions of an origin's robots.txt, and what changed."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal, NamedTuple, Self

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field
from pydantic_core import to_json

from app.api.answers.schema import RuleOut, SpanOut
from app.api.answers.serialize import robots_out
from app.api.parameters import OriginUrl, Profile, ProfileAgents, file_origin_from
from app.api.problems import Problem, bad_value, documented
from app.api.routes.robots_file import AS_TEXT, text_response
from app.api.routing import api_router
from app.api.services import Services, services_of
from app.cache.freshness import Snapshot, known_at
from app.cache.result import CacheResult, Source
from app.decisions.cached_files import NoVersion
from app.decisions.question import DialectName, agent_from, dialect_named
from app.history.reader import ArchivedVersions
from app.history.versions import History, Version, version_at
from app.loop.work_turns import YieldBudget
from robots_core.diff.as_json import changes_json
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from robots_core.robots.verdict import Permission, Reason
from robots_core.times import instant, read_instant

router = api_router("files")

_ID = re.compile(r"[0-9a-f]{8,64}")


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


@router.get(
    "/v1/robots/history",
    response_model=HistoryOut,
    responses={**AS_TEXT, **documented(404, 422, 503)},
)
async def history(
    request: Request,
    url: OriginUrl,
    agent: ProfileAgents = None,
    profile: Profile = None,
    version: Annotated[
        str | None,
        Query(description="A version id, or the first digits of its SHA-256."),
    ] = None,
    as_: Annotated[Literal["json", "text"], Query(alias="as", description="text: the file of that version.")] = "json",
) -> Response:
    """List the stored versions of an origin's robots.txt; nothing is fetched.

    An origin that the service was never asked about has none. 503 means that the store is unavailable.
    """
    services = services_of(request)
    origin = _origin(services, url, agent, profile)
    if version is None and as_ == "text":
        raise bad_value("version", None, "as=text needs a version; send the id of one.")
    if version is not None and _ID.fullmatch(version) is None:
        raise bad_value("version", version, f"{version[:100]!r} is not a version id; send 8 to 64 hex digits.")
    versions = await _Versions.of(services, origin)
    if version is None:
        return _json(origin, await _all(versions, await services.turns.first()))
    found = await versions.with_end(await versions.find(version))
    access = found.snapshot.access
    if as_ == "text":
        if not isinstance(access, Successful):
            raise Problem("no-file", f"The version {found.version.id} of {origin.robots_url} is not a file.")
        return text_response(access.body)
    text = access.body.decode("utf-8", "replace") if isinstance(access, Successful) else None
    return _json(origin, [_version_out(origin, found, text).model_dump(by_alias=True)])


@router.get("/v1/robots/diff", response_model=DiffOut, responses={**documented(404, 422, 503)})
async def diff(
    request: Request,
    url: OriginUrl,
    agent: ProfileAgents = None,
    profile: Profile = None,
    from_: Annotated[
        str | None,
        Query(
            alias="from",
            description="The older version, by id or by an instant; by default the one before `to`.",
        ),
    ] = None,
    to: Annotated[str | None, Query(description="The newer version, likewise; by default the current one.")] = None,
    dialect: Annotated[
        DialectName, Query(description="Reads both files: rfc9309, google, seznam, draft1996 or v2.")
    ] = "rfc9309",
) -> Response:
    """Compare two versions of a robots.txt: which agents gained or lost which paths; nothing is fetched."""
    services = services_of(request)
    origin = _origin(services, url, agent, profile)
    reads = dialect_named(dialect)
    wanted_after, wanted_before = _wanted(to, "to"), _wanted(from_, "from")
    versions = await _Versions.of(services, origin)
    after = versions.current(services.now()) if wanted_after is None else await versions.find(wanted_after)
    before = await (versions.before(after) if wanted_before is None else versions.find(wanted_before))
    sides = await versions.with_end(before), await versions.with_end(after)
    accesses = [side.snapshot.access for side in sides]
    size = sum(len(access.body) for access in accesses if isinstance(access, Successful))
    work = partial(changes_json, forbidden=services.forbidden)
    found = await services.long_work.run(request, size, work, *accesses, reads.name)
    older, newer = (_listed(origin, side) for side in sides)
    head = to_json({"url": origin.robots_url, "dialect": reads.name, "from": older, "to": newer})
    return Response(head[:-1] + b"," + found[1:], media_type="application/json")


def _origin(services: Services, url: str, agent: Sequence[str] | None, profile: str | None) -> Origin:
    known = services.agents()
    return file_origin_from(url, profile, known, None if agent is None else agent_from(agent, known))


def _wanted(text: str | None, parameter: str) -> str | datetime | None:
    """The version id or the instant of a parameter; raises Problem (422) if it is neither."""
    if text is None or _ID.fullmatch(text):
        return text
    at = read_instant(text)
    if at is None:
        raise bad_value(parameter, text, f"{text[:100]!r} is neither a version id nor an RFC 3339 instant.")
    return at


class _ReadVersion(NamedTuple):
    """A version, its snapshot, and the instant (Unix seconds) of the next version; None for the current one."""

    version: Version
    snapshot: Snapshot
    until: int | None


class _Versions(NamedTuple):
    """The stored versions of an origin's file, the oldest first, and those of its archive."""

    origin: Origin
    stored: History
    archived: ArchivedVersions

    @classmethod
    async def of(cls, services: Services, origin: Origin) -> Self:
        """Read the stored ones."""
        return cls(origin, await services.history.read(origin), services.history.archived(origin))

    def current(self, now: datetime) -> Version:
        """The last one. Raises NoVersion."""
        if not self.stored:
            raise NoVersion(self.origin, now, None)
        return self.stored[-1]

    async def find(self, wanted: str | datetime) -> Version:
        """The newest version whose digest begins with these digits, or that of an instant; the archive's if need be."""
        if isinstance(wanted, datetime):
            at = wanted.timestamp()
            found = version_at(self.stored, at) or await self.archived.at(at)
            if found is None:
                raise NoVersion(self.origin, wanted, self.stored[0].first_seen if self.stored else None)
            return found
        found = next((version for version in reversed(self.stored) if version.digest.hex().startswith(wanted)), None)
        found = found or await self.archived.by_id(wanted)
        if found is None:
            raise _no_version(f"No stored version of {self.origin.robots_url} has the id {wanted}.")
        return found

    async def before(self, version: Version) -> Version:
        """The version before this one."""
        index = self.stored.index(version) if version in self.stored else 0
        found = self.stored[index - 1] if index else (await self.archived.around(version))[0]
        if found is None:
            since = instant(version.first_seen)
            raise _no_version(f"No version of {self.origin.robots_url} is stored before that of {since}.")
        return found

    async def with_end(self, version: Version) -> _ReadVersion:
        """The version with its file, and when the next one began. Raises Problem if it cannot be read."""
        if version in self.stored:
            found = self.read(self.stored.index(version))
        else:
            _, following = await self.archived.around(version)
            begun = [it.first_seen for it in self.stored if it.first_seen > version.first_seen]
            found = _read(version, min(begun if following is None else [following, *begun], default=None))
        if found is None:
            since = instant(version.first_seen)
            raise _no_version(f"The stored version of {self.origin.robots_url} from {since} is unreadable.")
        return found

    def read(self, index: int) -> _ReadVersion | None:
        """A stored version with its file, None if it cannot be read."""
        version, *later = self.stored[index : index + 2]
        return _read(version, later[0].first_seen if later else None)


def _no_version(detail: str) -> Problem:
    return Problem("no-version", detail)


def _read(version: Version, until: int | None) -> _ReadVersion | None:
    """The version as it began: of failures, the first."""
    snapshot = version.read()
    return None if snapshot is None else _ReadVersion(version, known_at(snapshot, version.first_seen), until)


async def _all(versions: _Versions, budget: YieldBudget) -> Sequence[Mapping[str, object]]:
    """The versions, newest first; each is read, which takes some milliseconds for a large one."""
    listed: list[Mapping[str, object]] = []
    for index in reversed(range(len(versions.stored))):
        found = versions.read(index)
        if found is not None:
            listed.append(_listed(versions.origin, found))
        if budget.is_over():
            await budget.next()
    return listed


def _json(origin: Origin, versions: Sequence[Mapping[str, object]]) -> Response:
    """The JSON of HistoryOut."""
    return Response(to_json({"url": origin.robots_url, "versions": versions}), media_type="application/json")


def _listed(origin: Origin, found: _ReadVersion) -> Mapping[str, object]:
    """The members of VersionOut without its text."""
    return _version_out(origin, found).model_dump(by_alias=True, exclude={"text"})


def _version_out(origin: Origin, found: _ReadVersion, text: str | None = None) -> VersionOut:
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
