"""AGENTS_FILE: an operator's own crawlers as TOML.

A row is `[agents.ExampleBot]`. All of its fields are optional: those of AgentFacts and AgentRow, as in
core/robots_core/robots/agents.toml, and `floor` and `cap`, which bound its pace on every site. `profile` is a table
`[profiles.NAME]` with a `user_agent`, optionally a `from`, and a `signature_agent` and a `private_key` if its requests
are signed, and how (`signature_agent_form`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, model_validator

from app.cache.recheck import Pace
from app.cache.recheck_file import Interval
from app.fetch.profile import FetchProfile, Signer
from app.files.extras import needing
from app.files.toml_file import parse, read_file, read_row
from robots_core.agents.directory import DEFAULT_PROFILE, AgentDirectory, AgentFacts, KnownAgent, builtin_directory
from robots_core.origin import PROFILE_NAME, BadUrl, read_target
from robots_core.robots.agents import AgentRow, agent_of
from robots_core.robots.dialects import DIALECTS

AGENTS_FILE_LIMIT = 1024 * 1024
"""Bytes of the longest file that is read."""

FILE_ROWS_LIMIT = 1000
"""Rows of one kind in a file."""

PRIVATE_KEY_LIMIT = 16 * 1024
"""Bytes of the longest file with a private key that is read."""

CHAIN_LIMIT = 16

_PROFILE = re.compile(PROFILE_NAME)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKEN_TEXT = "a product token is 1 to 64 letters, digits, '-' or '_'"  # noqa: S105 - what a token is, not one


@dataclass(frozen=True, slots=True)
class OwnAgents:
    """The content of the file: all crawlers that are known with it, the paces of its own, and the fetch profiles.

    Paces are by lower-case token, profiles by name.
    """

    directory: AgentDirectory
    paces: Mapping[str, Pace]
    profiles: Mapping[str, FetchProfile]


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
    profiles = {name: _read_profile(name, value, directory) for name, value in tables.profiles.items()}
    rows: dict[str, _OwnFields] = {}
    own: list[KnownAgent] = []
    names: dict[str, str] = {}
    for name, value in tables.agents.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"the agent {name[:100]!r} is not a product token: {_TOKEN_TEXT}")
        if names.setdefault(name.lower(), name) != name:
            raise ValueError(f"the agents {names[name.lower()]!r} and {name!r} are the same; use one row")
        row = rows[name] = read_row(OwnAgentRow, value, f"the agent {name!r}")
        own.append(_known_agent(name, row))
        profile = own[-1].agent.profile
        if profile is not None and profile not in profiles:
            known = f"the profiles are {', '.join(profiles)}" if profiles else "the file has no profiles"
            raise ValueError(f"the agent {name!r} has profile = {profile!r}; {known}")
    paces = {
        name.lower(): Pace(row.floor, row.cap)
        for name, row in rows.items()
        if row.floor is not None or row.cap is not None
    }
    return OwnAgents(builtin_directory().with_own(own, profiles), paces, profiles)


def _read_profile(name: str, value: object, directory: Path) -> FetchProfile:
    if not _PROFILE.fullmatch(name) or name == DEFAULT_PROFILE:
        expected = f"1 to 32 letters, digits, '-' or '_', but not {DEFAULT_PROFILE!r}"
        raise ValueError(f"the profile {name[:100]!r} has an invalid name; use {expected}")
    row = read_row(_ProfileRow, value, f"the profile {name!r}")
    try:
        signer = row.signer(directory)
    except ValueError as error:
        raise ValueError(f"the profile {name!r} {error}") from None
    return FetchProfile(row.user_agent, row.from_, signer)


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
    private_key: Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")] | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.signature_agent is None) != (self.private_key is None):
            has, lacks = sorted(("signature_agent", "private_key"), key=lambda name: getattr(self, name) is None)
            raise ValueError(f"has {has} = {getattr(self, has)!r}, but no {lacks}; a signature needs both")
        return self

    def signer(self, directory: Path) -> Signer | None:
        """What signs the requests, None for nothing. Raises ValueError."""
        if self.signature_agent is None or self.private_key is None:
            return None
        with needing("signatures", "has a private_key, which"):
            from app.identity.keys import read_key
            from app.identity.signer import RequestSigner, SignatureAgent
        try:
            key = read_key(read_file(directory / self.private_key, PRIVATE_KEY_LIMIT, private=True))
        except ValueError as error:
            raise ValueError(f"has private_key = {self.private_key!r}; {error}") from None
        return RequestSigner(SignatureAgent.of(self.signature_agent, self.signature_agent_form), key)


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
