"""API keys: what API_KEYS_FILE holds of them, and how a caller's key is known; pure, but for the making of new ones.

A key is `<id>.<secret>`. The file has its id and its SHA-256, never the key. A plain, fast hash is right here: a
secret has 256 random bits, and nobody can try those out, at whatever speed; what slow hashes slow down is trying the
words that people choose. A slow one would cost a tenth of a second of work per request, which anyone could ask for.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.toml_file import parse, read_file, shown

FILE_LIMIT = 4 * 1024 * 1024
"""Octets of the longest file that is read."""

KEY_LIMIT = 512
"""Octets of the longest key that is looked at."""

LARGEST_LIMIT = 1_000_000_000
"""Requests that a limit may name at most."""

LONGEST_WINDOW = 86_400
"""Seconds that a limit may name at most."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS = ("sha256", "scopes", "limit")
_LIMIT_FIELDS = ("requests", "seconds", "burst")
_NO_DIGEST = "0" * 64


class Scope(StrEnum):
    """What a key is for: asking, or changing the service for others too (which includes asking)."""

    READ = "read"
    ADMIN = "admin"


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
class Key:
    """A key as the file knows it: `sha256` of the whole key in hexadecimal; no limit is None."""

    id: str
    sha256: str
    scopes: frozenset[Scope]
    limit: Limit | None

    def may(self, scope: Scope) -> bool:
        """Whether it is for this; an operator's key is for everything."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


class Keys:
    """All keys, by id."""

    def __init__(self, keys: Mapping[str, Key]) -> None:
        self.by_id = keys

    def find(self, text: bytes) -> Key | None:
        """The key that a caller showed, None for one that nobody was given.

        It is looked up by its id, which is no secret. The rest is compared by digest and in constant time, also where
        there is no such id, so that the time it takes tells neither the secret nor who has a key.
        """
        if len(text) > KEY_LIMIT:
            return None
        key = self.by_id.get(text.partition(b".")[0].decode("latin-1"))
        digest = hashlib.sha256(text).hexdigest()
        same = hmac.compare_digest(digest, _NO_DIGEST if key is None else key.sha256)
        return key if same else None


def new_key(id_: str, scope: Scope = Scope.READ) -> tuple[str, str]:
    """A new key, to be given to its owner and kept nowhere else, and the lines for API_KEYS_FILE that admit it.

    ValueError for an id that cannot be one.
    """
    _check_id(id_)
    key = f"{id_}.{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256(key.encode("ascii")).hexdigest()
    return key, f'[{id_}]\nsha256 = "{digest}"\nscopes = ["{scope}"]\n'


def load_keys(path: Path) -> Keys:
    """The keys that are in the file; ValueError says what is wrong with it."""
    return read_keys(read_file(path, FILE_LIMIT, private=True))


def read_keys(text: str) -> Keys:
    """Read keys from TOML, a table per key; ValueError names the key and the field that cannot be read.

    `[crawler-7]`, `sha256 = "..."`, `scopes = ["read"]` and, if there is one,
    `limit = {requests = 600, seconds = 60, burst = 100}`; a burst that is left out is `requests`.
    """
    written = parse(text, "table of keys")
    if not written:
        raise ValueError("it has no key: nobody could ask anything")
    keys = {id_: _read_key(id_, row) for id_, row in written.items()}
    holders: dict[str, str] = {}
    for id_, key in keys.items():
        other = holders.setdefault(key.sha256, id_)
        if other != id_:
            raise ValueError(f"the keys {other!r} and {id_!r} have the same sha256")
    return Keys(keys)


def _check_id(id_: str) -> None:
    if not _ID.fullmatch(id_):
        raise ValueError(f"{id_[:80]!r} is no id of a key: 1 to 64 letters, digits, '_' and '-'")


def _read_key(id_: str, row: object) -> Key:
    _check_id(id_)
    if not isinstance(row, dict):
        raise ValueError(f"the key {id_!r} has {shown(row)}, where a table of {', '.join(_FIELDS)} is expected")
    for field in row:
        if field not in _FIELDS:
            raise ValueError(f"the key {id_!r} has a field {shown(field)}; the fields are {', '.join(_FIELDS)}")
    sha256 = row.get("sha256")
    if not isinstance(sha256, str) or not _DIGEST.fullmatch(sha256):
        raise ValueError(f"the key {id_!r} has no sha256 of 64 digits 0-9 and a-f: make a key with its line anew")
    return Key(id_, sha256, _read_scopes(id_, row.get("scopes")), _read_limit(id_, row.get("limit")))


def _read_scopes(id_: str, value: object) -> frozenset[Scope]:
    known = [str(scope) for scope in Scope]
    if not isinstance(value, list) or not value or not all(name in known for name in value):
        raise ValueError(f"the key {id_!r} has scopes = {shown(value)}; a list of {' and '.join(known)} is expected")
    return frozenset(map(Scope, value))


def _read_limit(id_: str, value: object) -> Limit | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not set(value) <= set(_LIMIT_FIELDS):
        fields = ", ".join(_LIMIT_FIELDS)
        raise ValueError(f"the key {id_!r} has limit = {shown(value)}; a table of {fields} is expected")
    requests = _read_number(id_, "requests", value.get("requests"), LARGEST_LIMIT)
    seconds = _read_number(id_, "seconds", value.get("seconds"), LONGEST_WINDOW)
    return Limit(requests, seconds, _read_number(id_, "burst", value.get("burst", requests), LARGEST_LIMIT))


def _read_number(id_: str, field: str, value: object, most: int) -> int:
    if type(value) is not int or not 1 <= value <= most:
        detail = f"a whole number from 1 to {most} is expected"
        raise ValueError(f"the key {id_!r} has limit.{field} = {shown(value)}; {detail}")
    return value
