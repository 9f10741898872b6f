"""Settings from the environment, read once and validated. Only the composition root and the commands use them."""

import os
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app import __version__, agents_file
from app.archive.places import check_writable
from app.auth.keys import load_keys
from app.cache.recheck import SLOWEST
from app.cache.recheck_file import load
from app.decision_log.sinks import check_path
from app.history.redis_changes import CHANGES_LENGTH
from app.observability.logs import Level
from app.redis.password_file import load_password
from app.setting_names import misspelt
from app.validation import message
from robots_core.purposes.policy import Purpose, read_purposes

Network = IPv4Network | IPv6Network

SECRETS_DIR = "SECRETS_DIR"
"""The environment variable that names a directory whose files are settings."""

SHORTEST_SECRET = 32
"""Characters of the shortest PERMIT_SECRET."""


class BadSetting(ValueError):
    """An invalid setting; the message names it, its value and what is expected."""


def _signing_key(path: Path) -> object:
    try:
        from app.decision_log.signing import load_key
    except ImportError:
        text = "signing needs the extra `signatures`: install deploy/requirements-signatures.txt"
        raise ValueError(text) from None
    return load_key(path)


_LOADED: Final[Mapping[str, Callable[[Path], object]]] = {
    "redis_password_file": load_password,
    "recheck_file": load,
    "agents_file": agents_file.load,
    "api_keys_file": load_keys,
    "decision_log_key_file": _signing_key,
}
"""How the files that settings name are loaded."""


class Settings(BaseSettings):
    """The settings, immutable; each field is the environment variable of that name in upper case."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535)
    allow_unauthenticated: bool = False
    workers: int = Field(1, ge=1, le=256)
    redis_url: str | None = None
    redis_password_file: Path | None = None
    require_store_at_start: bool = False
    data_dir: Path | None = None
    allow_addresses: Annotated[tuple[Network, ...], NoDecode] = ()
    allow_ports: Annotated[frozenset[int] | Literal["*"], NoDecode] = frozenset()
    user_agent: str = Field(f"RobotsDecisions/{__version__}", pattern=r"^[!-~]([ -~]{0,253}[!-~])?$")
    fetch_timeout: float = Field(10.0, gt=0, le=120)
    memory_bytes: int = Field(256 * 1024 * 1024, ge=1024 * 1024)
    recheck_model: Literal["rfc9309", "seznam"] = "rfc9309"
    recheck_file: Path | None = None
    agents_file: Path | None = None
    api_keys_file: Path | None = None
    operator_token_file: Path | None = None
    min_refetch_seconds: float = Field(10.0, ge=0, le=3600)
    answer_seconds: int = Field(60, ge=1, le=86_400)
    on_forbidden: Literal["allow", "deny"] = "allow"
    changes_length: int = Field(CHANGES_LENGTH, ge=0, le=10_000_000)
    purposes: Annotated[tuple[Purpose, ...], NoDecode] = ()
    enforce_purposes: bool = False
    pace_by: Literal["origin", "host", "domain"] = "host"
    pace_floor: float = Field(1.0, ge=0, le=SLOWEST)
    pace_cap: float = Field(SLOWEST, ge=0, le=SLOWEST)
    pace_latency: float = Field(1.2, ge=0, le=100)
    pace_instances: int | None = Field(None, ge=1, le=100_000)
    permit_secret: SecretStr | None = None
    watch_seconds: float | None = Field(None, ge=0.1, le=3600)
    max_connection_age: float | None = Field(None, ge=1, le=86_400)
    decision_log: str | None = None
    decision_log_key_file: Path | None = None
    decision_log_share: float = Field(1.0, ge=0, le=1)
    decision_log_url: Literal["whole", "hashed", "none"] = "whole"
    archive: str | None = None
    log_format: Literal["json", "text"] | None = None
    log_level: Level = "info"
    access_log: bool = True
    log_client: bool = True

    @field_validator("allow_addresses", mode="before")
    @classmethod
    def _networks(cls, value: object) -> object:
        return tuple(_network(part) for part in _parts(value)) if isinstance(value, str) else value

    @field_validator("allow_ports", mode="before")
    @classmethod
    def _ports(cls, value: object) -> object:
        if not isinstance(value, str) or value.strip() == "*":
            return "*" if isinstance(value, str) else value
        return frozenset(_port(part) for part in _parts(value))

    @field_validator("log_level", mode="before")
    @classmethod
    def _level(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("purposes", mode="before")
    @classmethod
    def _purposes(cls, value: object) -> object:
        return read_purposes(_parts(value)) if isinstance(value, str) else value

    @field_validator("redis_password_file")
    @classmethod
    def _has_store(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None and info.data.get("redis_url") is None:
            raise ValueError("set REDIS_URL, too: it is the password of that store, and the embedded Valkey has none")
        return value

    @field_validator(*_LOADED)
    @classmethod
    def _readable(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        # Read here, too, so that an invalid file stops the start rather than each worker.
        if value is not None:
            _LOADED[str(info.field_name)](value)
        return value

    @field_validator("decision_log")
    @classmethod
    def _known_sink(cls, value: str | None) -> str | None:
        if value in (None, "stdout", "redis"):
            return value
        if not Path(value).is_absolute():
            raise ValueError("name stdout, redis, or a file by its absolute path")
        check_path(Path(value))
        return value

    @field_validator("archive", mode="before")
    @classmethod
    def _writable_place(cls, value: object) -> str | None:
        if value is None:
            return None
        check_writable(str(value))
        return str(value)

    @field_validator("permit_secret")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < SHORTEST_SECRET:
            raise ValueError(f"use at least {SHORTEST_SECRET} characters, for example from `openssl rand -hex 32`")
        return value

    @field_validator("pace_cap")
    @classmethod
    def _not_below_the_floor(cls, value: float, info: ValidationInfo) -> float:
        floor = info.data.get("pace_floor", 0.0)
        if value < floor:
            raise ValueError(f"it must not be less than PACE_FLOOR={floor:g}")
        return value

    @property
    def forbidden(self) -> bool:
        """Whether a 401 or 403 of robots.txt closes a site."""
        return self.on_forbidden == "deny"

    @classmethod
    def read(cls) -> "Settings":
        """Read the environment, then the files in SECRETS_DIR that are named like settings; raises BadSetting.

        A name that looks like a setting and is none is an error, too.
        """
        secrets = os.environ.get(SECRETS_DIR) or None
        if secrets is not None and not Path(secrets).is_dir():
            raise BadSetting(f"SECRETS_DIR={secrets} is not a directory.")
        known = {SECRETS_DIR, *map(str.upper, cls.model_fields)}
        files = [] if secrets is None else [path.name for path in Path(secrets).iterdir()]
        unknown = [f"{name} is not a setting: {hint}" for name, hint in misspelt(os.environ, known).items()]
        unknown += [f"{secrets}/{name} is not a setting: {hint}" for name, hint in misspelt(files, known).items()]
        if unknown:
            raise BadSetting(" ".join(unknown))
        try:
            return cls(_secrets_dir=secrets)
        except ValidationError as error:
            raise BadSetting(" ".join(map(_sentence, error.errors()))) from None


def _sentence(problem: ErrorDetails) -> str:
    name = str(problem["loc"][0]).upper()
    # Secrets are not quoted.
    value = "" if name == "PERMIT_SECRET" else f"={problem['input']!s}"
    return f"{name}{value} is invalid: {message(problem)}."


def _parts(value: str) -> list[str]:
    return [part for part in value.replace(",", " ").split() if part]


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an address range such as 10.0.0.0/8 or fd00::/8 ({error})") from None


def _port(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or not 1 <= int(text[:6]) <= 65535:
        raise ValueError(f"{text!r} is not a port; use numbers from 1 to 65535, or '*' alone for any port")
    return int(text)
