"""Permits: what the fleet signed is read again, and nothing else is."""

import base64
import hmac
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.origin import Origin
from app.pacing.local_pacer import ALONE
from app.pacing.permit import LONGEST, TAG_BYTES, BadPermit, Taken, read, write
from app.pacing.slots import PaceKey

SECRET, EARLIER = b"s" * 32, b"t" * 32

ORIGINS = [
    Origin("https", "www.example.com", 443),
    Origin("http", "2001:db8::1", 8080),
    Origin("https", "xn--bcher-kva.example", 8443),
    Origin("http", ("a" * 61 + ".") * 3 + "b" * 50 + ".example", 65535),
]
TOKENS = ["ExampleBot", "*", "a", "Google-CloudVertexBot", "x" * 2048]

names = st.from_regex(r"[0-9]{1,20}:[0-9a-f]{16}:[A-Za-z0-9._@-]{1,64}", fullmatch=True) | st.just(ALONE)
own = st.builds(Taken, st.builds(PaceKey.of, st.sampled_from(ORIGINS), st.sampled_from(TOKENS)), names)
addresses = st.ip_addresses().filter(lambda it: getattr(it, "scope_id", None) is None)
shared = st.builds(Taken, addresses.map(lambda address: PaceKey(f"address:{address}", None)), names)

GOOD = (Taken(PaceKey("https://www.example.com", "examplebot"), "1:0123456789abcdef:a"),)


@given(st.tuples(own) | st.tuples(own, shared))
def test_what_is_written_is_read_again(slots: tuple[Taken, ...]) -> None:
    written = write(slots, SECRET)
    assert len(written) <= LONGEST
    assert read(written, [SECRET]) == slots


def test_a_permit_of_an_accepted_secret_is_read() -> None:
    assert read(write(GOOD, EARLIER), [SECRET, EARLIER]) == GOOD
    with pytest.raises(BadPermit):
        read(write(GOOD, EARLIER), [SECRET])


def test_a_permit_that_was_altered_is_refused() -> None:
    written = write(GOOD, SECRET)
    for at, char in enumerate(written):
        with pytest.raises(BadPermit):
            read(written[:at] + ("A" if char != "A" else "B") + written[at + 1 :], [SECRET])
    payload, _, tag = written.rpartition(".")
    for other in (payload, f"{payload}.", f".{tag}", tag, f"{written}=", f" {written}", f"{written}\n", written[:-1]):
        with pytest.raises(BadPermit):
            read(other, [SECRET])


def test_a_tag_of_one_permit_is_not_one_of_another() -> None:
    other = write((Taken(PaceKey("https://victim.example", "examplebot"), GOOD[0].name),), SECRET)
    forged = f"{other.rpartition('.')[0]}.{write(GOOD, SECRET).rpartition('.')[2]}"
    with pytest.raises(BadPermit):
        read(forged, [SECRET])


def signed(content: bytes) -> str:
    payload = base64.urlsafe_b64encode(content).rstrip(b"=").decode()
    tag = hmac.digest(SECRET, payload.encode(), "sha256")[:TAG_BYTES]
    return f"{payload}.{base64.urlsafe_b64encode(tag).rstrip(b'=').decode()}"


def test_the_signature_of_these_tests_is_right() -> None:
    content = json.dumps([["https://www.example.com", "examplebot", GOOD[0].name]]).encode()
    assert read(signed(content), [SECRET]) == GOOD


@pytest.mark.parametrize("said", [None, 5, {}, "", "abc", [], [[]], [["a", "b"]], [["a", 5, "b"]], [[None, "a", "b"]]])
def test_nonsense_that_was_signed_is_refused(said: Any) -> None:
    with pytest.raises(BadPermit):
        read(signed(json.dumps(said).encode()), [SECRET])


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 600, b"1" * 600])
def test_signed_bytes_that_are_no_json_are_refused(content: bytes) -> None:
    with pytest.raises(BadPermit):
        read(signed(content), [SECRET])


@given(st.text() | st.text(alphabet=st.characters(codec="ascii")))
@example("\ud800")
@example("é.é")
@example("a" * 10**6)
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(BadPermit):
        read(text, [SECRET])
