"""API keys: reading API_KEYS_FILE, finding a caller's key, and generating new keys.

A key is `<id>.<secret>`. The file has the id and the SHA-256 of the key, never the key itself. A fast hash is enough,
since the secret has 256 random bits: slow hashes protect passwords, which can be guessed. A slow hash would also let
any caller make the service work for a tenth of a second per request.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.files.toml_file import parse, read_file, read_row
from robots_core.origin import PROFILE_NAME
from robots_core.purposes.policy import Purpose, PurposePolicy, read_purposes

KEYS_FILE_LIMIT = 4 * 1024 * 1024
"""Bytes of the largest file that is read."""

KEY_LIMIT = 512
"""Bytes of the longest key that is hashed."""

MAX_REQUESTS = 1_000_000_000
"""The largest number of requests in a limit."""

MAX_SECONDS = 86_400
"""The largest number of seconds in a limit."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PROFILE = re.compile(PROFILE_NAME)
_NO_DIGEST = "0" * 64


class Scope(StrEnum):
    """What a key permits; each includes those before it.

    Asking questions, also sending robots.txt files that the caller fetched, or also all that operators do.
    """

    READ = "read"
    INGEST = "ingest"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Its place in this order."""
        return _SCOPES.index(self)


_SCOPES = tuple(Scope)


@dataclass(frozen=True, slots=True)
class Limit:
    """`requests` per `seconds` in the long run, and at most `burst` at once."""

    requests: int
    seconds: int
    burst: int

    @property
    def interval(self) -> float:
        """Seconds that one request costs."""
        return self.seconds / self.requests


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key in the file: `sha256` is that of the whole key, in hexadecimal; `limit` is None for unlimited.

    `purposes` are those of questions that name none, `enforce` says whether refused ones close a page; None leaves
    either to the settings. `sign` are the profiles of AGENTS_FILE as which requests may be signed for the caller.
    """

    id: str
    sha256: str
    scopes: frozenset[Scope]
    limit: Limit | None
    purposes: tuple[Purpose, ...] | None = None
    enforce: bool | None = None
    sign: frozenset[str] = frozenset()

    def may(self, scope: Scope) -> bool:
        """Whether the key has the scope, or one that includes it."""
        return any(own.rank >= scope.rank for own in self.scopes)

    def policy(self, default: PurposePolicy) -> PurposePolicy:
        """The purpose policy for requests with this key; `default` is that of the service."""
        if self.purposes is None and self.enforce is None:
            return default
        purposes = default.purposes if self.purposes is None else self.purposes
        return PurposePolicy(purposes, default.enforce if self.enforce is None else self.enforce)


class Keys:
    """All keys, by id."""

    def __init__(self, keys: Mapping[str, ApiKey]) -> None:
        self.by_id = keys

    def find(self, text: bytes) -> ApiKey | None:
        """The key that a caller sent; None if it is unknown.

        The id, which is not secret, finds the key. The digests are compared in constant time, even if no key has the
        id, so that the time taken reveals neither secrets nor ids.
        """
        if len(text) > KEY_LIMIT:
            return None
        key = self.by_id.get(text.partition(b".")[0].decode("latin-1"))
        digest = hashlib.sha256(text).hexdigest()
        matches = hmac.compare_digest(digest, _NO_DIGEST if key is None else key.sha256)
        return key if matches else None


def new_key(id_: str, scope: Scope = Scope.READ) -> tuple[str, str]:
    """Generate a key; return it, to be given to its owner and stored nowhere else, and its lines for API_KEYS_FILE.

    Raises ValueError for an invalid id.
    """
    _check_id(id_)
    key = f"{id_}.{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256(key.encode("ascii")).hexdigest()
    return key, f'[{id_}]\nsha256 = "{digest}"\nscopes = ["{scope}"]\n'


def load_keys(path: Path) -> Keys:
    """Read the file of keys. Raises ValueError."""
    return read_keys(read_file(path, KEYS_FILE_LIMIT, private=True))


def read_keys(text: str) -> Keys:
    """Read keys from TOML, one table per key. Raises ValueError, which names the key and the field.

    `[crawler-7]`, `sha256 = "..."`, `scopes = ["read"]` and optionally
    `limit = {requests = 600, seconds = 60, burst = 100}`, where `burst` defaults to `requests`;
    `purposes = ["search", "ai-train"]`; `enforce = true`; and `sign = ["acme"]`.
    """
    written = parse(text, "table of keys")
    if not written:
        raise ValueError("it has no keys, so no request would be accepted")
    keys = {id_: _read_key(id_, row) for id_, row in written.items()}
    ids: dict[str, str] = {}
    for id_, key in keys.items():
        other = ids.setdefault(key.sha256, id_)
        if other != id_:
            raise ValueError(f"the keys {other!r} and {id_!r} have the same sha256")
    return Keys(keys)


def _check_id(id_: str) -> None:
    if not _ID.fullmatch(id_):
        raise ValueError(
            f"{id_[:80]!r} is not a valid key id: use 1 to 64 letters, digits, '_' and '-', the first a letter or digit"
        )


def _check_digest(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise ValueError("expected 64 digits 0-9 and a-f; generate a new key if it is lost")
    return value


def _check_profile(value: str) -> str:
    if not _PROFILE.fullmatch(value):
        raise ValueError("expected the name of a profile: 1 to 32 letters, digits, '-' or '_'")
    return value


class _LimitFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    requests: int = Field(ge=1, le=MAX_REQUESTS)
    seconds: int = Field(ge=1, le=MAX_SECONDS)
    burst: int | None = Field(None, ge=1, le=MAX_REQUESTS)


class _KeyFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    # Not quoted in errors: it may be a key, pasted in place of its digest.
    sha256: Annotated[str, AfterValidator(_check_digest), Field(repr=False)]
    scopes: list[Literal["read", "ingest", "admin"]] = Field(min_length=1)
    limit: _LimitFields | None = None
    purposes: list[Purpose] | None = None
    enforce: bool | None = None
    sign: list[Annotated[str, AfterValidator(_check_profile)]] = []


def _read_key(id_: str, value: object) -> ApiKey:
    _check_id(id_)
    row = read_row(_KeyFields, value, f"the key {id_!r}")
    given = row.limit
    limit = None if given is None else Limit(given.requests, given.seconds, given.burst or given.requests)
    purposes = None if row.purposes is None else read_purposes(row.purposes)
    return ApiKey(id_, row.sha256, frozenset(map(Scope, row.scopes)), limit, purposes, row.enforce, frozenset(row.sign))
