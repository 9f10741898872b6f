"""Encode snapshots for the store, and decode them. The bytes are not trusted.

The format is a two-byte mark, then one Zstandard frame: a line of JSON with the facts, then the body as it is.

Two releases share a store during a rolling upgrade, so each reads what the other writes. A reader ignores members and
trailing list items that it does not know, and gives missing ones their default. A writer adds members, and never
removes or redefines one; where an older reader would misread the rest, it raises `min_version`, and older releases
treat the value as a miss.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn, assert_never

from app.cache.compression import compress, decompress, first_line
from app.cache.freshness import Failing, First, Snapshot
from app.times import LONGEST_DELTA
from robots_core.dates import END_OF_TIME
from robots_core.robots.access import (
    BODY_LIMIT,
    DETAIL_LIMIT,
    Access,
    Blocked,
    Cause,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)

FACTS_LIMIT = 1024 * 1024
"""Bytes of the longest line of facts that is read; the fetch bounds header fields far below."""

ENCODED_LIMIT = (BODY_LIMIT + 1 + FACTS_LIMIT) * 257 // 256 + 64
"""Bytes of the longest encoding that is read; compression adds at most 1/256 to incompressible data."""

VERSION = 1
"""The version that this release reads; a value whose `min_version` is higher is a miss."""

_MARK = b"R\x02"
_BODY_LIMIT = BODY_LIMIT + 1  # see readable_part
_PLAIN_LIMIT = FACTS_LIMIT + _BODY_LIMIT + 1


class _Invalid(ValueError):
    pass


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as bytes that `decode` reads."""
    return _MARK + compress(plain(snapshot))


def plain(snapshot: Snapshot) -> bytes:
    """The content of the compressed part: a line of JSON with the facts, then the body."""
    body = snapshot.access.body if isinstance(snapshot.access, Successful) else b""
    return json.dumps(facts_of(snapshot), separators=(",", ":")).encode() + b"\n" + body


def facts_of(snapshot: Snapshot) -> dict[str, Any]:
    """The facts of the fetch, all but the body, as JSON; `from_facts` reads them."""
    facts = {
        "access": _write_access(snapshot.access),
        "fetched_at": snapshot.fetched_at,
        "final_url": snapshot.final_url,
        "etag": snapshot.validators.etag,
        "last_modified": snapshot.validators.last_modified,
        "lifetime": snapshot.lifetime,
        "failing": None if snapshot.failing is None else _write_failing(snapshot.failing),
        "since": snapshot.since,
        "ingested": snapshot.ingested,
        "own_until": snapshot.own_until,
    }
    return {name: value for name, value in facts.items() if value is not None}


def decode(data: bytes) -> Snapshot | None:
    """The snapshot in these bytes; None if they are damaged, foreign, too large or need a later release."""
    try:
        return _read(data)
    except (ValueError, LookupError, RecursionError):
        return None


def read_facts(data: bytes) -> Mapping[str, object]:
    """The facts of an encoded snapshot without its body, unchecked; none if they cannot be read."""
    try:
        facts = json.loads(first_line(data[len(_MARK) :], FACTS_LIMIT)) if data.startswith(_MARK) else None
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def from_facts(facts: object, body: bytes) -> Snapshot | None:
    """The snapshot with these facts and this body; None if they are invalid."""
    try:
        return _snapshot(facts, body)
    except (ValueError, LookupError):
        return None


def _write_access(access: Access) -> list[Any]:
    match access:
        case Successful(status, _, truncated, content_type):
            return ["successful", status, truncated, content_type]
        case Unavailable(status, cause):
            return ["unavailable", status, cause]
        case Unreachable():
            return ["unreachable"]
        case Blocked(address):
            return ["blocked", address]
        case unknown:
            assert_never(unknown)


def _write_failing(failing: Failing) -> list[Any]:
    failure, first = failing.failure, failing.first
    return [
        failing.since,
        failing.last_at,
        failing.attempts,
        failure.cause,
        failure.status,
        failure.retry_after,
        None if first is None else [first.at, first.failure.cause, first.failure.status, first.ingested],
        failure.detail,
    ]


def _read(data: bytes) -> Snapshot:
    return _snapshot(*_unpack(data))


def _snapshot(facts: Any, body: bytes) -> Snapshot:
    if not isinstance(facts, dict):
        raise _Invalid
    _natural(facts.get("min_version", VERSION), 0, VERSION)
    failing, lifetime, since = facts.get("failing"), facts.get("lifetime"), facts.get("since")
    own_until = facts.get("own_until")
    failing = None if failing is None else _read_failing(failing)
    access = _read_access(facts["access"], body, failing)
    fetched_at = _number(facts["fetched_at"], END_OF_TIME)
    return Snapshot(
        access,
        fetched_at,
        _text(facts.get("final_url")),
        Validators(_text(facts.get("etag")), _text(facts.get("last_modified"))),
        None if lifetime is None else _number(lifetime, LONGEST_DELTA),
        failing,
        None if since is None else _natural(since, 0, int(fetched_at)),
        ingested=_text(facts.get("ingested")),
        own_until=None if own_until is None else _natural(own_until, 0, int(END_OF_TIME)),
    )


def _unpack(data: bytes) -> tuple[Any, bytes]:
    if len(data) > ENCODED_LIMIT or not data.startswith(_MARK):
        raise _Invalid
    text = decompress(data[len(_MARK) :], _PLAIN_LIMIT)
    facts, newline, body = text.partition(b"\n")
    if not newline or len(facts) > FACTS_LIMIT or len(body) > _BODY_LIMIT:
        raise _Invalid
    return json.loads(facts, parse_constant=_refuse), body


def _read_access(written: Any, body: bytes, failing: Failing | None) -> Access:
    match written:
        case ["successful", status, bool(truncated), content_type, *_]:
            return Successful(_natural(status, 100, 999), body, truncated, _text(content_type))
        case ["unreachable", *_] if failing is not None and not body:
            return failing.failure
        case ["unavailable", status, cause, *_] if failing is None and not body:
            return Unavailable(_natural(status, 100, 999), None if cause is None else Cause(cause))
        case ["blocked", str(address), *_] if failing is None and not body:
            return Blocked(address)
        case _:
            raise _Invalid


def _read_failing(written: Any) -> Failing:
    if not isinstance(written, list) or len(written) < 6:
        raise _Invalid
    since, last_at, attempts, cause, status, retry_after, first, detail = (*written, None, None)[:8]
    return Failing(
        _number(since, END_OF_TIME),
        _number(last_at, END_OF_TIME),
        _natural(attempts, 1),
        _failure(cause, status, None if retry_after is None else _natural(retry_after, 0), _detail(detail)),
        None if first is None else _read_first(first),
    )


def _read_first(written: Any) -> First:
    match written:
        case [at, cause, status, ingested, *_]:
            return First(_number(at, END_OF_TIME), _failure(cause, status), _text(ingested))
        case _:
            raise _Invalid


def _failure(cause: Any, status: Any, retry_after: int | None = None, detail: str | None = None) -> Unreachable:
    return Unreachable(Cause(cause), None if status is None else _natural(status, 100, 999), retry_after, detail)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Invalid
    value.encode()  # refuses a lone surrogate, which no answer could show
    return value


def _detail(value: Any) -> str | None:
    text = _text(value)
    if text is not None and len(text) > DETAIL_LIMIT:
        raise _Invalid
    return text


def _natural(value: Any, low: int, high: int | None = None) -> int:
    if type(value) is int and low <= value and (high is None or value <= high):
        return value
    raise _Invalid


def _number(value: Any, high: float) -> float:
    if type(value) in (int, float) and 0 <= value <= high:
        return float(value)
    raise _Invalid


def _refuse(constant: str) -> NoReturn:
    raise _Invalid(constant)
