"""What the store holds is not trusted: our own snapshots come back whole, and anything else is nothing."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.codec import ENCODED_LIMIT, decode, encode
from app.cache.compression import compress
from app.cache.freshness import Failing, Snapshot
from robots_core.robots.access import BODY_LIMIT, DETAIL_LIMIT, Cause, Successful, Unreachable, Validators
from tests.cache.snapshots import snapshots

COPY = Snapshot(Successful(200, b"User-agent: *\n"), 5.0, None, Validators('"1"'), 60.0)
FACTS: dict[str, Any] = {
    "access": ["successful", 200, False, None],
    "fetched_at": 5.0,
    "final_url": None,
    "etag": '"1"',
    "last_modified": None,
    "lifetime": 60.0,
    "failing": None,
    "since": None,
}
DEAD = Unreachable(Cause.DNS)
FAILING: dict[str, Any] = {"since": 1.0, "last_at": 2.0, "attempts": 1, "failure": {"cause": "dns"}}


def pack(facts: Any, body: bytes = b"User-agent: *\n", mark: bytes = b"R\x02") -> bytes:
    line = facts if isinstance(facts, bytes) else json.dumps(facts).encode()
    return mark + compress(line + b"\n" + body)


@given(snapshots)
def test_an_encoded_snapshot_is_decoded(snapshot: Snapshot) -> None:
    assert decode(encode(snapshot)) == snapshot


@pytest.mark.parametrize(("detail", "is_read"), [("é" * DETAIL_LIMIT, True), ("a" * (DETAIL_LIMIT + 1), False)])
def test_the_detail_of_a_failure_is_kept_within_its_limit(detail: str, is_read: bool) -> None:
    failure = Unreachable(Cause.TLS, detail=detail)
    decoded = decode(encode(Snapshot(failure, 5.0, failing=Failing(5.0, 5.0, 1, failure))))
    assert (decoded is not None) is is_read
    if decoded is not None:  # two failures that differ in the detail alone are equal
        assert decoded.failing is not None
        assert isinstance(decoded.access, Unreachable)
        assert (decoded.failing.failure.detail, decoded.access.detail) == (detail, detail)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_a_miss(data: bytes) -> None:
    assert decode(data) is None
    assert decode(b"R\x01" + data) is None
    assert decode(b"R\x02" + data) is None


@given(snapshots, st.data())
def test_damaged_bytes_are_a_miss(snapshot: Snapshot, data: st.DataObject) -> None:
    encoded = bytearray(encode(snapshot))
    at = data.draw(st.integers(0, len(encoded) - 1))
    assert decode(bytes(encoded[:at])) is None
    encoded[at] ^= data.draw(st.integers(1, 255))
    # Some bits of the head of a frame do not affect its content.
    assert decode(bytes(encoded)) in (None, snapshot)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=9,
)


@given(st.sampled_from(sorted(FACTS)), json_values)
def test_facts_of_another_shape_never_raise(name: str, value: Any) -> None:
    decoded = decode(pack({**FACTS, name: value}))
    assert decoded is None or decode(encode(decoded)) == decoded


def test_the_facts_of_these_tests_are_valid() -> None:
    assert decode(pack(FACTS)) == COPY
    assert decode(pack({**FACTS, "failing": FAILING})) == replace(COPY, failing=Failing(1.0, 2.0, 1, DEAD))


@pytest.mark.parametrize(
    "facts",
    [
        {name: value for name, value in FACTS.items() if name != "access"},
        {name: value for name, value in FACTS.items() if name != "fetched_at"},
        {**FACTS, "min_version": 2},
        {**FACTS, "min_version": "1"},
        {**FACTS, "min_version": None},
        {**FACTS, "fetched_at": True},
        {**FACTS, "fetched_at": "5"},
        {**FACTS, "fetched_at": -1.0},
        {**FACTS, "fetched_at": 1e15},
        {**FACTS, "fetched_at": None},
        {**FACTS, "fetched_at": float("nan")},
        {**FACTS, "lifetime": float("inf")},
        {**FACTS, "lifetime": -1},
        {**FACTS, "etag": 1},
        {**FACTS, "etag": "\udcff"},
        {**FACTS, "access": ["successful", 20, False, None]},
        {**FACTS, "access": ["successful", True, False, None]},
        {**FACTS, "access": ["successful", 200, 0, None]},
        {**FACTS, "access": ["unavailable", 404, None]},  # a body, with no file to have one
        {**FACTS, "access": ["unreachable"]},
        {**FACTS, "access": []},
        {**FACTS, "failing": {**FAILING, "attempts": 0}},
        {**FACTS, "failing": {**FAILING, "since": -1.0}},
        {**FACTS, "failing": {**FAILING, "last_at": 1e15}},
        {**FACTS, "failing": {**FAILING, "first": {"at": -1.0, "failure": {"cause": "dns"}}}},
        {**FACTS, "failing": {**FAILING, "failure": {"cause": "boredom"}}},
        {**FACTS, "failing": {**FAILING, "failure": {"cause": "dns", "status": 20}}},
        {**FACTS, "failing": {**FAILING, "failure": {"cause": "dns", "retry_after": -5}}},
        {**FACTS, "failing": {**FAILING, "failure": {"cause": []}}},
        {**FACTS, "failing": {**FAILING, "failure": "dns"}},
        {**FACTS, "failing": {"since": 1.0}},
        {**FACTS, "failing": [1.0]},
        {**FACTS, "since": 6},  # after it was fetched
        {**FACTS, "since": -1},
        {**FACTS, "since": 1.5},
        {**FACTS, "since": False},
        [],
        b'{"fetched_at": 1' + b"0" * 9000 + b"}",
        json.dumps({**FACTS, "fetched_at": 0}).replace('"fetched_at": 0', '"fetched_at": 1e999').encode(),
        b"[" * 200_000,
        b"\xff",
    ],
)
def test_invalid_facts_are_a_miss(facts: Any) -> None:
    assert decode(pack(facts)) is None


@pytest.mark.parametrize("access", [["unavailable", 404, None], ["blocked", "10.0.0.1"], ["unreachable"]])
def test_failures_are_stored_with_a_copy_or_alone(access: list[Any]) -> None:
    failing = None if access == ["unreachable"] else FAILING
    assert decode(pack({**FACTS, "access": access, "failing": failing}, b"")) is None


@pytest.mark.parametrize("mark", [b"R\x00", b"R\x03", b"", b"r\x02"])
def test_another_format_is_a_miss(mark: bytes) -> None:
    assert decode(pack(FACTS, mark=mark)) is None


def test_trailing_bytes_are_a_miss() -> None:
    assert decode(encode(COPY) + b"x") is None


def test_a_body_over_the_limit_is_a_miss() -> None:
    whole = Snapshot(Successful(200, bytes(range(256)) * (BODY_LIMIT // 256), truncated=True), 1.0)
    assert decode(encode(whole)) == whole
    assert decode(pack(FACTS, b"x" * (BODY_LIMIT + 1))) is not None
    assert decode(pack(FACTS, b"x" * (BODY_LIMIT + 2))) is None


def test_a_compression_bomb_is_not_decompressed() -> None:
    assert decode(pack(FACTS, bytes(50_000_000))) is None
    assert decode(b"R\x02" + bytes(ENCODED_LIMIT)) is None


def test_a_body_is_compressed() -> None:
    body = b"Disallow: /private/\n" * 1000
    assert len(encode(Snapshot(Successful(200, body), 1.0))) < len(body) / 10
