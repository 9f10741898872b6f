"""`GET /v1/robots/history` and `/v1/robots/diff`: earlier versions of an origin's robots.txt, and what changed."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import Query, Request, Response
from pydantic_core import to_json

from app.api.parameters import OriginUrl, Profile, ProfileAgents, file_origin_from
from app.api.problems import Problem, bad_value, documented
from app.api.routes import raw_file
from app.api.routing import api_router
from app.api.schemas.history import DiffOut, HistoryOut, ReadVersion, version_out
from app.api.services import Services, services_of
from app.cache.freshness import known_at
from app.decisions.cached_files import NoVersion
from app.decisions.question import DialectName, agent_from, dialect_named
from app.history.versions import History, Version, version_at
from robots_core.diff.as_json import changes_json
from robots_core.origin import Origin
from robots_core.robots.access import Access, Successful
from robots_core.robots.dialects import Dialect
from robots_core.times import instant, read_instant

router = api_router("files")

_ID = re.compile(r"[0-9a-f]{8,64}")


@router.get(
    "/v1/robots/history",
    response_model=HistoryOut,
    responses={**raw_file.DOCUMENTED, **documented(404, 422, 503)},
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
    versions = await services.history.read(origin)
    if version is None:
        return await _all(services, origin, versions)
    found = await _with_end(services, origin, versions, await _find(services, origin, versions, version))
    return _raw(origin, found) if as_ == "text" else _one(origin, found)


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
    versions = await services.history.read(origin)
    find = partial(_find, services, origin, versions)
    if not versions and wanted_after is None:
        raise NoVersion(origin, services.now(), None)
    after = versions[-1] if wanted_after is None else await find(wanted_after)
    if wanted_before is None:
        before = await _before(services, origin, versions, after)
    else:
        before = await find(wanted_before)
    sides = [await _with_end(services, origin, versions, version) for version in (before, after)]
    return await _difference(request, origin, reads, *sides)


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


async def _find(services: Services, origin: Origin, versions: History, wanted: str | datetime) -> Version:
    """The newest version whose digest begins with these digits, or that of an instant; from the archive if need be."""
    if isinstance(wanted, datetime):
        at = wanted.timestamp()
        found = version_at(versions, at) or await services.history.archived(origin).at(at)
        if found is None:
            raise NoVersion(origin, wanted, versions[0].first_seen if versions else None)
        return found
    found = next((version for version in reversed(versions) if version.digest.hex().startswith(wanted)), None)
    found = found or await services.history.archived(origin).by_id(wanted)
    if found is None:
        raise Problem(404, "no-version", f"No stored version of {origin.robots_url} has the id {wanted}.")
    return found


async def _before(services: Services, origin: Origin, versions: History, version: Version) -> Version:
    index = versions.index(version) if version in versions else 0
    if index:
        return versions[index - 1]
    found, _ = await services.history.archived(origin).around(version)
    if found is None:
        detail = f"No version of {origin.robots_url} is stored before that of {instant(version.first_seen)}."
        raise Problem(404, "no-version", detail)
    return found


async def _with_end(services: Services, origin: Origin, versions: History, version: Version) -> ReadVersion:
    """The version with its file, and when the next one began. Raises Problem if it cannot be read."""
    if version in versions:
        found = _read(versions, versions.index(version))
    else:
        _, following = await services.history.archived(origin).around(version)
        begun = [it.first_seen for it in versions if it.first_seen > version.first_seen]
        until = min(begun if following is None else [following, *begun], default=None)
        found = _read_one(version, until)
    if found is None:
        detail = f"The stored version of {origin.robots_url} from {instant(version.first_seen)} is unreadable."
        raise Problem(404, "no-version", detail)
    return found


def _read(versions: History, index: int) -> ReadVersion | None:
    until = versions[index + 1].first_seen if index + 1 < len(versions) else None
    return _read_one(versions[index], until)


def _read_one(version: Version, until: int | None) -> ReadVersion | None:
    """The version as it began: of failures, the first."""
    snapshot = version.read()
    return None if snapshot is None else ReadVersion(version, known_at(snapshot, version.first_seen), until)


async def _all(services: Services, origin: Origin, versions: History) -> Response:
    """The JSON of HistoryOut; each version is read, which takes some milliseconds for a large one."""
    budget = await services.turns.first()
    listed: list[dict[str, object]] = []
    for index in reversed(range(len(versions))):
        found = _read(versions, index)
        if found is not None:
            listed.append(_listed(origin, found))
        if budget.is_over():
            await budget.next()
    return _versions(origin, listed)


def _one(origin: Origin, found: ReadVersion) -> Response:
    access = found.snapshot.access
    text = access.body.decode("utf-8", "replace") if isinstance(access, Successful) else None
    return _versions(origin, [version_out(origin, found, text).model_dump(by_alias=True)])


def _versions(origin: Origin, listed: Sequence[Mapping[str, object]]) -> Response:
    """The JSON of HistoryOut."""
    return Response(to_json({"url": origin.robots_url, "versions": listed}), media_type="application/json")


def _raw(origin: Origin, found: ReadVersion) -> Response:
    access = found.snapshot.access
    if not isinstance(access, Successful):
        raise Problem(404, "no-file", f"The version {found.version.id} of {origin.robots_url} is not a file.")
    return raw_file.answer(access.body)


async def _difference(
    request: Request, origin: Origin, dialect: Dialect, before: ReadVersion, after: ReadVersion
) -> Response:
    """The JSON of DiffOut."""
    services = services_of(request)
    accesses = before.snapshot.access, after.snapshot.access
    work = partial(changes_json, forbidden=services.forbidden)
    found = await services.long_work.run(request, sum(map(_size, accesses)), work, *accesses, dialect.name)
    sides = {"from": _listed(origin, before), "to": _listed(origin, after)}
    head = to_json({"url": origin.robots_url, "dialect": dialect.name, **sides})
    return Response(head[:-1] + b"," + found[1:], media_type="application/json")


def _listed(origin: Origin, found: ReadVersion) -> dict[str, object]:
    """The members of VersionOut without its text."""
    return version_out(origin, found).model_dump(by_alias=True, exclude={"text"})


def _size(access: Access) -> int:
    return len(access.body) if isinstance(access, Successful) else 0
