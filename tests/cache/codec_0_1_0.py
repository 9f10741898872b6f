"""The reader of release 0.1.0, frozen: what is written now has to be read by it during a rolling upgrade."""

import json
import zlib
from typing import Any, NoReturn

from app.cache.freshness import LONGEST_LIFETIME, Failing, Snapshot
from app.robots.access import (
    BODY_LIMIT,
    Access,
    Blocked,
    Cause,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)

FACTS_LIMIT = 1024 * 1024

ENCODED_LIMIT = (BODY_LIMIT + FACTS_LIMIT) * 1001 // 1000 + 64

_MARK = b"R\x01"
_END_OF_TIME = 253_402_300_799.0  # the last second of the year 9999: a later one has no date to show
_FIELDS = {"access", "fetched_at", "final_url", "etag", "last_modified", "lifetime", "failing", "since"}


class _NotOurs(ValueError):
    pass


def decode(data: bytes) -> Snapshot | None:
    """The snapshot, or None for what 0.1.0 does not read."""
    try:
        return _read(data)
    except (ValueError, RecursionError, zlib.error):
        return None


def _read(data: bytes) -> Snapshot:
    facts, body = _unpack(data)
    if not isinstance(facts, dict) or facts.keys() != _FIELDS:
        raise _NotOurs
    failing = None if facts["failing"] is None else _read_failing(facts["failing"])
    access = _read_access(facts["access"], body, failing)
    fetched_at = _number(facts["fetched_at"], _END_OF_TIME)
    return Snapshot(
        access,
        fetched_at,
        _text(facts["final_url"]),
        Validators(_text(facts["etag"]), _text(facts["last_modified"])),
        None if facts["lifetime"] is None else _number(facts["lifetime"], LONGEST_LIFETIME),
        failing,
        None if facts["since"] is None else _natural(facts["since"], 0, int(fetched_at)),
    )


def _unpack(data: bytes) -> tuple[Any, bytes]:
    if not data.startswith(_MARK) or len(data) > ENCODED_LIMIT:
        raise _NotOurs
    stream = zlib.decompressobj()
    plain = stream.decompress(data[len(_MARK) :], FACTS_LIMIT + BODY_LIMIT + 1)
    if not stream.eof or stream.unused_data:
        raise _NotOurs
    facts, newline, body = plain.partition(b"\n")
    if not newline or len(facts) > FACTS_LIMIT or len(body) > BODY_LIMIT:
        raise _NotOurs
    return json.loads(facts, parse_constant=_refuse), body


def _read_access(written: Any, body: bytes, failing: Failing | None) -> Access:
    match written:
        case ["successful", status, bool(truncated), content_type]:
            return Successful(_natural(status, 100, 999), body, truncated, _text(content_type))
        case ["unreachable"] if failing is not None and not body:
            return failing.failure
        case ["unavailable", status, cause] if failing is None and not body:
            return Unavailable(_natural(status, 100, 999), None if cause is None else Cause(cause))
        case ["blocked", str(address)] if failing is None and not body:
            return Blocked(address)
        case _:
            raise _NotOurs


def _read_failing(written: Any) -> Failing:
    if not isinstance(written, list) or len(written) != 6:
        raise _NotOurs
    since, last_at, attempts, cause, status, retry_after = written
    failure = Unreachable(
        Cause(cause),
        None if status is None else _natural(status, 100, 999),
        None if retry_after is None else _natural(retry_after, 0),
    )
    return Failing(_number(since, _END_OF_TIME), _number(last_at, _END_OF_TIME), _natural(attempts, 1), failure)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _NotOurs
    value.encode()  # refuses a lone surrogate, which no answer could show
    return value


def _natural(value: Any, low: int, high: int | None = None) -> int:
    if type(value) is int and low <= value and (high is None or value <= high):
        return value
    raise _NotOurs


def _number(value: Any, high: float) -> float:
    if type(value) in (int, float) and 0 <= value <= high:
        return float(value)
    raise _NotOurs


def _refuse(constant: str) -> NoReturn:
    raise _NotOurs(constant)
