"""Permits: the slot that the fleet signed is read back, and any other text is refused."""

import base64
import hmac
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.pacing.local_pacer import LOCAL_SLOT
from app.pacing.permit import MAX_CHARS, TAG_BYTES, BadPermit, SlotRef, sign, verify
from app.pacing.slots import NAMED, PaceKey
from robots_core.origin import Origin

SECRET, EARLIER = b"s" * 32, b"t" * 32

ORIGINS = [
    Origin("https", "www.example.com", 443),
    Origin("http", "2001:db8::1", 8080),
    Origin("https", "xn--bcher-kva.example", 8443),
    Origin("http", ("a" * 61 + ".") * 3 + "b" * 50 + ".example", 65535),
]
TOKENS = ["ExampleBot", "*", "a", "Google-CloudVertexBot", "x" * 2048]

names = st.from_regex(r"[0-9]{1,20}:[0-9a-f]{16}:[A-Za-z0-9._@-]{1,64}", fullmatch=True) | st.just(LOCAL_SLOT)
POOLS = [*(origin.uri_host for origin in ORIGINS), *(origin.key for origin in ORIGINS), f"{NAMED}{'x' * 64}"]

keys = st.builds(PaceKey.of, st.sampled_from(POOLS), st.sampled_from(TOKENS))
micros = st.integers(0, 10**16).map(lambda number: number / 1_000_000)
slots = st.builds(SlotRef, st.sampled_from([origin.key for origin in ORIGINS]), keys, names, micros)

GOOD = SlotRef(
    "https://www.example.com", PaceKey("www.example.com", "examplebot"), "1:0123456789abcdef:a", 1_700_000_000.25
)


@given(slots)
def test_a_signed_slot_is_read_back(slot: SlotRef) -> None:
    permit = sign(slot, SECRET)
    assert len(permit) <= MAX_CHARS
    read = verify(permit, [SECRET])
    assert read == slot._replace(go_at=read.go_at)
    assert read.go_at == pytest.approx(slot.go_at, abs=1e-5)


def test_a_permit_of_an_accepted_secret_is_read() -> None:
    assert verify(sign(GOOD, EARLIER), [SECRET, EARLIER]) == GOOD
    with pytest.raises(BadPermit):
        verify(sign(GOOD, EARLIER), [SECRET])


def test_an_altered_permit_is_refused() -> None:
    permit = sign(GOOD, SECRET)
    for at, char in enumerate(permit):
        with pytest.raises(BadPermit):
            verify(permit[:at] + ("A" if char != "A" else "B") + permit[at + 1 :], [SECRET])
    payload, _, tag = permit.rpartition(".")
    for other in (payload, f"{payload}.", f".{tag}", tag, f"{permit}=", f" {permit}", f"{permit}\n", permit[:-1]):
        with pytest.raises(BadPermit):
            verify(other, [SECRET])


def test_the_tag_of_another_permit_is_refused() -> None:
    other = sign(SlotRef("https://victim.example", PaceKey("victim.example", "examplebot"), GOOD.name), SECRET)
    forged = f"{other.rpartition('.')[0]}.{sign(GOOD, SECRET).rpartition('.')[2]}"
    with pytest.raises(BadPermit):
        verify(forged, [SECRET])


def signed(content: bytes) -> str:
    payload = base64.urlsafe_b64encode(content).rstrip(b"=").decode()
    tag = hmac.digest(SECRET, payload.encode(), "sha256")[:TAG_BYTES]
    return f"{payload}.{base64.urlsafe_b64encode(tag).rstrip(b'=').decode()}"


def test_a_payload_signed_here_is_accepted() -> None:
    content = json.dumps([GOOD.origin, "examplebot", GOOD.name, "www.example.com", 1700000000.25]).encode()
    assert verify(signed(content), [SECRET]) == GOOD


@pytest.mark.parametrize(
    "content",
    [
        ["https://www.example.com", "examplebot", "1:ab:a", "www.example.com"],
        ["https://www.example.com", "examplebot", "1:ab:a", "www.example.com", "1"],
        ["https://www.example.com", "examplebot", "1:ab:a", "www.example.com", 1.0, "x"],
        None,
        5,
        {},
        "",
        "abc",
        [],
        [[]],
        ["a", "b"],
        ["a", 5, "b"],
        [None, "a", "b"],
        ["a", None, "b"],
        [["a", "b", "c"]],
    ],
)
def test_signed_json_that_is_not_a_slot_is_refused(content: Any) -> None:
    with pytest.raises(BadPermit):
        verify(signed(json.dumps(content).encode()), [SECRET])


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 600, b"1" * 600])
def test_signed_bytes_that_are_not_json_are_refused(content: bytes) -> None:
    with pytest.raises(BadPermit):
        verify(signed(content), [SECRET])


@given(st.text() | st.text(alphabet=st.characters(codec="ascii")))
@example("\ud800")
@example("é.é")
@example("a" * 10**6)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadPermit):
        verify(text, [SECRET])
