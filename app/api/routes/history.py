"""`GET /v1/robots/history` and `/v1/robots/diff`: earlier versions of an origin's robots.txt, and what changed."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import Query, Request, Response
from pydantic_core import to_json

from app.api import raw_file
from app.api.parameters import OriginUrl, Profile, ProfileAgents, file_origin_from
from app.api.problems import Problem, bad_value, documented
from app.api.routing import api_router
from app.api.schemas.history import DiffOut, HistoryOut, ReadVersion, version_out
from app.api.services import Services, services_of
from app.decide import NoVersion
from app.history.as_json import changes_json
from app.history.versions import History, Version, version_at
from app.instants import instant, read_instant
from app.question import agent_from, dialect_named
from robots_core.origin import Origin
from robots_core.robots.access import Access, Successful
from robots_core.robots.dialects import Dialect

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
    versions = await services.decider.history(origin)
    if version is None:
        return await _all(services, origin, versions)
    versions = await _with_archived(services, origin, versions, version)
    if as_ == "text":
        return _raw(origin, versions, version)
    return _one(origin, versions, version)


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
        str, Query(description="Reads both files: rfc9309, google, seznam, draft1996 or v2.")
    ] = "rfc9309",
) -> Response:
    """Compare two versions of a robots.txt: which agents gained or lost which paths; nothing is fetched."""
    services = services_of(request)
    origin = _origin(services, url, agent, profile)
    reads = dialect_named(dialect)
    pick_after, pick_before = _picker(to, "to"), _picker(from_, "from")
    versions = await _with_archived(services, origin, await services.decider.history(origin), from_, to)
    after = pick_after(origin, versions) if pick_after else _last(origin, versions, services.now())
    before = pick_before(origin, versions) if pick_before else _before(origin, versions, after)
    return await _difference(request, origin, reads, *(_read_or_404(origin, versions, it) for it in (before, after)))


def _origin(services: Services, url: str, agent: Sequence[str] | None, profile: str | None) -> Origin:
    known = services.agents()
    return file_origin_from(url, profile, known, None if agent is None else agent_from(agent, known))


_Pick = Callable[[Origin, History], Version]


def _picker(text: str | None, parameter: str) -> _Pick | None:
    """A function that finds the version a parameter names; raises Problem (422) if the parameter is malformed."""
    if text is None:
        return None
    if _ID.fullmatch(text):
        return lambda origin, versions: _by_id(origin, versions, text)
    at = read_instant(text)
    if at is None:
        raise bad_value(parameter, text, f"{text[:100]!r} is neither a version id nor an RFC 3339 instant.")
    return lambda origin, versions: _by_instant(origin, versions, at)


async def _with_archived(services: Services, origin: Origin, versions: History, *wanted: str | None) -> History:
    """The versions, and those of the archive with these ids, or of these instants, if they are no longer stored."""
    found: dict[tuple[bytes, int], Version] = {}
    for text in filter(None, wanted):
        key: float | str = text
        if _ID.fullmatch(text):
            known = any(version.digest.hex().startswith(text) for version in versions)
        else:
            at = read_instant(text)
            key = 0.0 if at is None else at.timestamp()
            known = at is None or version_at(versions, key) is not None
        archived = None if known else await services.decider.archived(origin, key)
        if archived is not None:
            found[archived.digest, archived.first_seen] = archived
    return tuple(sorted((*versions, *found.values()), key=lambda it: it.first_seen)) if found else versions


def _by_id(origin: Origin, versions: History, id_: str) -> Version:
    """The newest version whose digest begins with `id_`."""
    found = next((version for version in reversed(versions) if version.digest.hex().startswith(id_)), None)
    if found is None:
        raise Problem(404, "no-version", f"No stored version of {origin.robots_url} has the id {id_}.")
    return found


def _by_instant(origin: Origin, versions: History, at: datetime) -> Version:
    found = version_at(versions, at.timestamp())
    if found is None:
        raise NoVersion(origin, at, versions[0].first_seen if versions else None)
    return found


def _last(origin: Origin, versions: History, now: datetime) -> Version:
    if not versions:
        raise NoVersion(origin, now, None)
    return versions[-1]


def _before(origin: Origin, versions: History, version: Version) -> Version:
    index = versions.index(version)
    if index == 0:
        detail = f"No version of {origin.robots_url} is stored before that of {instant(version.first_seen)}."
        raise Problem(404, "no-version", detail)
    return versions[index - 1]


def _read(versions: History, version: Version) -> ReadVersion | None:
    index = versions.index(version)
    until = versions[index + 1].first_seen if index + 1 < len(versions) else None
    snapshot = version.read()
    return None if snapshot is None else ReadVersion(version, snapshot, until)


def _read_or_404(origin: Origin, versions: History, version: Version) -> ReadVersion:
    found = _read(versions, version)
    if found is None:
        detail = f"The stored version of {origin.robots_url} from {instant(version.first_seen)} is unreadable."
        raise Problem(404, "no-version", detail)
    return found


async def _all(services: Services, origin: Origin, versions: History) -> Response:
    """The JSON of HistoryOut; each version is read, which takes some milliseconds for a large one."""
    budget = await services.turns.first()
    listed: list[dict[str, object]] = []
    for version in reversed(versions):
        found = _read(versions, version)
        if found is not None:
            listed.append(_listed(origin, found))
        if budget.is_over():
            await budget.next()
    return Response(to_json({"url": origin.robots_url, "versions": listed}), media_type="application/json")


def _one(origin: Origin, versions: History, id_: str) -> Response:
    found = _read_or_404(origin, versions, _by_id(origin, versions, id_))
    access = found.snapshot.access
    text = access.body.decode("utf-8", "replace") if isinstance(access, Successful) else None
    whole = HistoryOut(url=origin.robots_url, versions=[version_out(origin, found, text)])
    return Response(whole.model_dump_json(by_alias=True), media_type="application/json")


def _raw(origin: Origin, versions: History, id_: str) -> Response:
    access = _read_or_404(origin, versions, _by_id(origin, versions, id_)).snapshot.access
    if not isinstance(access, Successful):
        raise Problem(404, "no-file", f"The version {id_} of {origin.robots_url} is not a file.")
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
