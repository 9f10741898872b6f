"""Settings from the environment, read once and validated. Only the composition root and the commands use them."""

import os
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app import __version__
from app.auth.keys import load_keys
from app.cache.recheck import SLOWEST
from app.cache.recheck_file import load as load_table
from app.decision_log.sinks import check_path
from app.fetch.network import CONNECTIONS_PER_ADDRESS
from app.fetch.proxy import read_proxy
from app.files.extras import needing
from app.files.validation import message
from app.history.archive.places import check_writable, shown
from app.history.redis_changes import CHANGES_LENGTH
from app.main.agents_file import load as load_agents
from app.main.setting_names import misspelt
from app.observability.logs import Level
from app.overrides.overrides_file import load as load_overrides
from app.store.password_file import load_password
from robots_core.purposes.policy import Purpose, PurposePolicy, read_purposes

T = TypeVar("T")
Network = IPv4Network | IPv6Network

SECRETS_DIR = "SECRETS_DIR"
"""The environment variable that names a directory whose files are settings."""

PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
"""The environment variables that name a proxy to other programs. Fetches go by FETCH_PROXY alone."""

SHORTEST_SECRET = 32
"""Characters of the shortest PERMIT_SECRET."""


class BadSetting(ValueError):
    """An invalid setting; the message names it, its value and what is expected."""


def _signing_key(path: Path) -> object:
    with needing("signatures", "signing"):
        from app.decision_log.signing import load_key
    return load_key(path)


def _checked(check: Callable[[T], object]) -> AfterValidator:
    """A value that `check` raises ValueError for if it is invalid.

    Files are loaded here, too, so that an invalid one stops the start rather than each worker.
    """

    def checked(value: T) -> T:
        check(value)
        return value

    return AfterValidator(checked)


def _listed(read: Callable[[list[str]], object]) -> BeforeValidator:
    """A value that is written as words, with commas or blanks between them."""
    return BeforeValidator(lambda value: read(_parts(value)) if isinstance(value, str) else value)


def _has_store(path: Path, info: ValidationInfo) -> Path:
    if info.data.get("redis_url") is None:
        raise ValueError("set REDIS_URL, too: it is the password of that store, and the embedded Valkey has none")
    return path


def _ports(value: object) -> object:
    if not isinstance(value, str) or value.strip() == "*":
        return "*" if isinstance(value, str) else value
    return frozenset(map(_port, _parts(value)))


def _not_below_the_floor(value: float, info: ValidationInfo) -> float:
    floor = info.data.get("pace_floor", 0.0)
    if value < floor:
        raise ValueError(f"it must not be less than PACE_FLOOR={floor:g}")
    return value


def _long_enough(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < SHORTEST_SECRET:
        raise ValueError(f"use at least {SHORTEST_SECRET} characters, for example from `openssl rand -hex 32`")
    return value


def _check_sink(value: str) -> None:
    if value not in ("stdout", "redis"):
        if not Path(value).is_absolute():
            raise ValueError("name stdout, redis, or a file by its absolute path")
        check_path(Path(value))


def _lower_case(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class Settings(BaseSettings):
    """The settings, immutable; each field is the environment variable of that name in upper case."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535)
    allow_unauthenticated: bool = False
    workers: int = Field(1, ge=1, le=256)
    redis_url: str | None = None
    redis_password_file: Annotated[Path, AfterValidator(_has_store), _checked(load_password)] | None = None
    require_store_at_start: bool = False
    data_dir: Path | None = None
    allow_addresses: Annotated[tuple[Network, ...], NoDecode, _listed(lambda parts: tuple(map(_network, parts)))] = ()
    allow_ports: Annotated[frozenset[int] | Literal["*"], NoDecode, BeforeValidator(_ports)] = frozenset()
    user_agent: str = Field(f"RobotsDecisions/{__version__}", pattern=r"^[!-~]([ -~]{0,253}[!-~])?$")
    fetch_timeout: float = Field(10.0, gt=0, le=120)
    fetch_proxy: Annotated[str, _checked(read_proxy)] | None = None
    fetches_per_address: int = Field(CONNECTIONS_PER_ADDRESS, ge=1, le=256)
    memory_bytes: int = Field(256 * 1024 * 1024, ge=1024 * 1024)
    recheck_model: Literal["rfc9309", "seznam"] = "rfc9309"
    recheck_file: Annotated[Path, _checked(load_table)] | None = None
    agents_file: Annotated[Path, _checked(load_agents)] | None = None
    overrides_file: Annotated[Path, _checked(load_overrides)] | None = None
    api_keys_file: Annotated[Path, _checked(load_keys)] | None = None
    operator_token_file: Path | None = None
    min_refetch_seconds: float = Field(10.0, ge=0, le=3600)
    answer_seconds: int = Field(60, ge=1, le=86_400)
    on_forbidden: Literal["allow", "deny"] = "allow"
    changes_length: int = Field(CHANGES_LENGTH, ge=0, le=10_000_000)
    purposes: Annotated[tuple[Purpose, ...], NoDecode, _listed(read_purposes)] = ()
    enforce_purposes: bool = False
    pace_by: Literal["origin", "host", "domain"] = "host"
    pace_floor: float = Field(1.0, ge=0, le=SLOWEST)
    pace_cap: Annotated[float, Field(ge=0, le=SLOWEST), AfterValidator(_not_below_the_floor)] = SLOWEST
    pace_latency: float = Field(1.2, ge=0, le=100)
    pace_instances: int | None = Field(None, ge=1, le=100_000)
    permit_secret: Annotated[SecretStr, AfterValidator(_long_enough)] | None = None
    watch_seconds: float | None = Field(None, ge=0.1, le=3600)
    keep_alive_seconds: int = Field(75, ge=1, le=3600)
    max_connection_age: float | None = Field(None, ge=1, le=86_400)
    decision_log: Annotated[str, _checked(_check_sink)] | None = None
    decision_log_key_file: Annotated[Path, _checked(_signing_key)] | None = None
    decision_log_share: float = Field(1.0, ge=0, le=1)
    decision_log_url: Literal["whole", "hashed", "none"] = "whole"
    archive: Annotated[str, BeforeValidator(str), _checked(check_writable)] | None = None
    log_format: Literal["json", "text"] | None = None
    log_level: Annotated[Level, BeforeValidator(_lower_case)] = "info"
    access_log: bool = True
    log_client: bool = True
    _environment: set[str] = PrivateAttr(default_factory=lambda: set(map(str.upper, os.environ)))

    @property
    def forbidden(self) -> bool:
        """Whether a 401 or 403 of robots.txt closes a site."""
        return self.on_forbidden == "deny"

    @property
    def purpose_policy(self) -> PurposePolicy:
        """The purposes of callers that have none of their own."""
        return PurposePolicy(self.purposes, self.enforce_purposes)

    @property
    def unused_proxies(self) -> list[str]:
        """The variables that name a proxy to other programs, if fetches use none."""
        return sorted(PROXIES & self._environment) if self.fetch_proxy is None else []

    @classmethod
    def read(cls) -> "Settings":
        """Read the environment, then the files in SECRETS_DIR that are named like settings; raises BadSetting.

        A misspelt setting is an error, too.
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
    value = str(problem["input"])
    # Secrets are not quoted.
    secret = name == "PERMIT_SECRET" or (name == "FETCH_PROXY" and "@" in value)
    value = "" if secret else f"={shown(value)}"
    text = f"{name}{value} is invalid: {message(problem)}"
    return text if text.endswith((".", "?")) else f"{text}."


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
