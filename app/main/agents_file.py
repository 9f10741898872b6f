"""AGENTS_FILE: an operator's own crawlers as TOML.

A row is `[agents.ExampleBot]`. All of its fields are optional: those of AgentFacts and AgentRow, as in
core/robots_core/robots/agents.toml, and `floor` and `cap`, which bound its pace on every site. `profile` is a table
`[profiles.NAME]` with a `user_agent`, optionally a `from`, and a `signature_agent` and a `private_key` if its requests
are signed, how (`signature_agent_form`, `signature_covers`), and which further keys are in the directory
(`published_keys`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, model_validator

from app.cache.recheck import Pace
from app.cache.recheck_file import Interval
from app.fetch.profile import FetchProfile
from app.files.extras import needing
from app.files.toml_file import parse, read_file, read_row
from app.identity.coverage import Covers
from robots_core.agents.directory import DEFAULT_PROFILE, AgentDirectory, AgentFacts, KnownAgent, builtin_directory
from robots_core.origin import PROFILE_NAME, BadUrl, read_target
from robots_core.robots.agents import AgentRow, agent_of
from robots_core.robots.dialects import DIALECTS

if TYPE_CHECKING:  # of the extra `signatures`
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from app.identity.directory import Identity
    from app.identity.signer import RequestSigner

AGENTS_FILE_LIMIT = 1024 * 1024
"""Bytes of the longest file that is read."""

FILE_ROWS_LIMIT = 1000
"""Rows of one kind in a file."""

PRIVATE_KEY_LIMIT = 16 * 1024
"""Bytes of the longest file with a private key that is read."""

CHAIN_LIMIT = 16

PUBLISHED = 8
"""Keys that a profile may have beside the one that signs."""

_PROFILE = re.compile(PROFILE_NAME)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKEN_TEXT = "a product token is 1 to 64 letters, digits, '-' or '_'"  # noqa: S105 - what a token is, not one


@dataclass(frozen=True, slots=True)
class OwnAgents:
    """The content of the file: all crawlers that are known with it, the paces of its own, and the fetch profiles.

    Paces are by lower-case token, profiles by name, identities by the authority of their signature_agent.
    """

    directory: AgentDirectory
    paces: Mapping[str, Pace]
    profiles: Mapping[str, FetchProfile]
    identities: Mapping[str, "Identity"] = field(default_factory=dict)


def load(path: Path) -> OwnAgents:
    """Read the file; raises ValueError."""
    return read_agents(read_file(path, AGENTS_FILE_LIMIT), path.parent)


def read_agents(text: str, directory: Path) -> OwnAgents:
    """Read the file's TOML, and the keys that it names, whose paths are relative to `directory`.

    Raises ValueError, which names the row, the field and the value.
    """
    tables = read_row(_Tables, parse(text, "file of agents"), "it")
    _check_count("agents", tables.agents)
    _check_count("profiles", tables.profiles)
    read = {name: _read_profile(name, value, directory) for name, value in tables.profiles.items()}
    profiles = {name: profile.fetch for name, profile in read.items()}
    own: list[KnownAgent] = []
    names: dict[str, str] = {}
    paces: dict[str, Pace] = {}
    for name, value in tables.agents.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"the agent {name[:100]!r} is not a product token: {_TOKEN_TEXT}")
        if names.setdefault(name.lower(), name) != name:
            raise ValueError(f"the agents {names[name.lower()]!r} and {name!r} are the same; use one row")
        row = read_row(OwnAgentRow, value, f"the agent {name!r}")
        own.append(_known_agent(name, row))
        if row.floor is not None or row.cap is not None:
            paces[name.lower()] = Pace(row.floor, row.cap)
        profile = own[-1].agent.profile
        if profile is not None and profile not in profiles:
            known = f"the profiles are {', '.join(profiles)}" if profiles else "the file has no profiles"
            raise ValueError(f"the agent {name!r} has profile = {profile!r}; {known}")
    return OwnAgents(builtin_directory().with_own(own, profiles), paces, profiles, _identities(read, own, paces))


class _Profile(NamedTuple):
    """A profile, the origin of its directory, and its keys, of which the first one signs."""

    fetch: FetchProfile
    origin: str | None
    keys: "Sequence[Ed25519PrivateKey]"


def _identities(
    profiles: Mapping[str, _Profile], own: Sequence[KnownAgent], paces: Mapping[str, Pace]
) -> Mapping[str, "Identity"]:
    """What sites get, by authority. The directory has the keys of all profiles there, the card is of the first one."""
    identities: dict[str, Identity] = {}
    for name, profile in profiles.items():
        if profile.origin is None:
            continue
        authority = profile.origin.removeprefix("https://")
        if authority in identities:
            continue
        from app.identity import directory
        from app.identity.keys import thumbprint

        there = {name: other for name, other in profiles.items() if other.origin == profile.origin}
        crawlers = [it for it in own if it.agent.profile in there and not it.agent.policy]
        agent = next((it for it in crawlers if it.agent.profile == name), None)
        token = None if agent is None else agent.agent.token
        called = token or name if agent is None or agent.operator is None else agent.operator
        about = directory.card(profile.origin, profile.fetch.user_agent, profile.fetch.from_, called, token)
        keys = directory.KeyDirectory(authority, [key for other in there.values() for key in other.keys])
        pages = {it.agent.token.lower(): _page(it, there, paces) for it in crawlers}
        signing = list(dict.fromkeys(thumbprint(other.keys[0]) for other in there.values()))
        identities[authority] = directory.Identity(keys, signing, about, pages)
    return identities


def _page(crawler: KnownAgent, profiles: Mapping[str, _Profile], paces: Mapping[str, Pace]) -> bytes:
    """The page about a crawler that has one of the profiles."""
    from app.identity.crawler_page import crawler_page

    profile, pace = profiles[str(crawler.agent.profile)], paces.get(crawler.agent.token.lower())
    cap = None if pace is None else pace.cap
    return crawler_page(crawler, str(profile.origin), profile.fetch.user_agent, profile.fetch.from_, cap)


def _read_profile(name: str, value: object, directory: Path) -> _Profile:
    if not _PROFILE.fullmatch(name) or name == DEFAULT_PROFILE:
        expected = f"1 to 32 letters, digits, '-' or '_', but not {DEFAULT_PROFILE!r}"
        raise ValueError(f"the profile {name[:100]!r} has an invalid name; use {expected}")
    row = read_row(_ProfileRow, value, f"the profile {name!r}")
    try:
        keys = row.keys(directory)
    except ValueError as error:
        raise ValueError(f"the profile {name!r} {error}") from None
    return _Profile(FetchProfile(row.user_agent, row.from_, row.signer(keys)), row.signature_agent, keys)


def _check_count(kind: str, rows: Mapping[str, object]) -> None:
    if len(rows) > FILE_ROWS_LIMIT:
        raise ValueError(f"it has {len(rows)} {kind}; at most {FILE_ROWS_LIMIT} are read")


def _check_token(value: str) -> str:
    if not _TOKEN.fullmatch(value):
        raise ValueError(_TOKEN_TEXT)
    return value


def _check_origin(value: str) -> str:
    try:
        origin = read_target(value).origin
    except BadUrl as error:
        raise ValueError(str(error)) from None
    if origin.scheme != "https" or value != origin.key:
        raise ValueError("expected a bare https origin in lower case, without a path, such as https://bot.example.com")
    return value


def _check_dialect(value: str) -> str:
    if value not in DIALECTS:
        raise ValueError(f"expected one of {', '.join(DIALECTS)}")
    return value


class _Tables(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    agents: dict[str, object] = {}
    profiles: dict[str, object] = {}


class _ProfileRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    user_agent: Annotated[str, Field(pattern=r"^[!-~]([ -~]{0,253}[!-~])?$")]
    from_: str | None = Field(None, alias="from", max_length=254, pattern=r"^[!-?A-~]+@[!-?A-~]+$")
    signature_agent: Annotated[str, AfterValidator(_check_origin)] | None = None
    signature_agent_form: Literal["dictionary", "string"] = "dictionary"
    signature_covers: Covers = "path"
    published_keys: Annotated[list[Annotated[str, Field(pattern=r"^[^\x00]+$")]], Field(max_length=PUBLISHED)] = []
    private_key: Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")] | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.signature_agent is None) != (self.private_key is None):
            has, lacks = sorted(("signature_agent", "private_key"), key=lambda name: getattr(self, name) is None)
            raise ValueError(f"has {has} = {getattr(self, has)!r}, but no {lacks}; a signature needs both")
        if self.published_keys and self.private_key is None:
            raise ValueError(f"has published_keys = {self.published_keys!r}, but no private_key, which signs")
        return self

    def keys(self, directory: Path) -> "Sequence[Ed25519PrivateKey]":
        """The key that signs, and those that are published beside it; none if nothing is signed. Raises ValueError."""
        if self.private_key is None:
            return ()
        with needing("signatures", "has a private_key, which"):
            from app.identity.keys import read_key
        keys = []
        named = [("private_key", self.private_key), *(("published_keys", name) for name in self.published_keys)]
        for member, name in named:
            try:
                keys.append(read_key(read_file(directory / name, PRIVATE_KEY_LIMIT, private=True)))
            except ValueError as error:
                raise ValueError(f"has {member} = {name!r}; {error}") from None
        return keys

    def signer(self, keys: "Sequence[Ed25519PrivateKey]") -> "RequestSigner | None":
        """What signs the requests with the first key, None for nothing."""
        if self.signature_agent is None or not keys:
            return None
        from app.identity.signer import RequestSigner

        return RequestSigner(keys[0], self.signature_agent, self.signature_agent_form, self.signature_covers)


class _OwnFields(BaseModel):
    """The fields that agents.toml has not, or checks less."""

    model_config = ConfigDict(strict=True, extra="forbid")

    chain: Annotated[list[Annotated[str, AfterValidator(_check_token)]], Field(max_length=CHAIN_LIMIT)] = []
    dialect: Annotated[str, AfterValidator(_check_dialect)] = "rfc9309"
    floor: Interval | None = None
    cap: Interval | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.floor is not None and self.cap is not None and self.floor > self.cap:
            raise ValueError(f"has floor = {self.floor:g} s, more than cap = {self.cap:g} s")
        return self


def _fields(*described: type[AgentFacts | AgentRow]) -> dict[str, Any]:
    hints = {name: hint for of in described for name, hint in get_type_hints(of).items()}
    return {
        field.name: (hints[field.name], Field(field.default, **field.metadata))
        for of in described
        for field in fields(of)
        if field.name not in _OwnFields.model_fields
    }


OwnAgentRow = create_model("OwnAgentRow", __base__=_OwnFields, **_fields(AgentFacts, AgentRow))


def _known_agent(token: str, row: _OwnFields) -> KnownAgent:
    said = row.model_dump()
    return KnownAgent(agent=agent_of(token, said), **{field.name: said[field.name] for field in fields(AgentFacts)})
