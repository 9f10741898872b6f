"""What a caller is given for a slot: what is written is read again, and nothing else is."""

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.origin import Origin
from app.pace.alone import ALONE
from app.pace.permit import LONGEST, BadPermit, Taken, read, write
from app.pace.slots import Lane

ORIGINS = [
    Origin("https", "www.example.com", 443),
    Origin("http", "2001:db8::1", 8080),
    Origin("https", "xn--bcher-kva.example", 8443),
    Origin("http", ("a" * 61 + ".") * 3 + "b" * 50 + ".example", 65535),
]
TOKENS = ["ExampleBot", "*", "a", "Google-CloudVertexBot", "x" * 2048]

names = st.from_regex(r"[0-9]{1,20}:[0-9a-f]{16}:[A-Za-z0-9._@-]{1,64}", fullmatch=True) | st.just(ALONE)
own = st.builds(Taken, st.builds(Lane.of, st.sampled_from(ORIGINS), st.sampled_from(TOKENS)), names)
addresses = st.ip_addresses().filter(lambda it: getattr(it, "scope_id", None) is None)
shared = st.builds(Taken, addresses.map(lambda address: Lane(f"address:{address}", None)), names)


@given(st.tuples(own) | st.tuples(own, shared))
def test_what_is_written_is_read_again(slots: tuple[Taken, ...]) -> None:
    written = write(slots)
    assert len(written) <= LONGEST
    assert read(written) == slots


def encoded(said: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).rstrip(b"=").decode()


NAME = "1:0123456789abcdef:a"
GOOD = ["https://www.example.com", "examplebot", NAME]
SHARED = ["address:192.0.2.1", None, NAME]


def test_the_good_ones_of_these_tests_are_good() -> None:
    assert len(read(encoded([GOOD]))) == 1
    assert len(read(encoded([GOOD, SHARED]))) == 2


@pytest.mark.parametrize(
    "said",
    [
        None,
        5,
        {},
        "",
        [],
        [[]],
        [GOOD, GOOD],
        [SHARED],
        [SHARED, GOOD],
        [GOOD, SHARED, SHARED],
        GOOD,
        [[*GOOD, 1]],
        [["https://www.example.com:443", "examplebot", NAME]],
        [["https://www.example.com/", "examplebot", NAME]],
        [["HTTPS://www.example.com", "examplebot", NAME]],
        [["https://user@www.example.com", "examplebot", NAME]],
        [["https://www.example.com}:x{", "examplebot", NAME]],
        [["ftp://www.example.com", "examplebot", NAME]],
        [["https://www.example.com", "ExampleBot", NAME]],
        [["https://www.example.com", "examplebot:slots", NAME]],
        [["https://www.example.com", "", NAME]],
        [["https://www.example.com", "a" * 65, NAME]],
        [["https://www.example.com", 5, NAME]],
        [["https://www.example.com", None, NAME]],
        [["https://www.example.com", "examplebot", "x"]],
        [["https://www.example.com", "examplebot", NAME + "\n"]],
        [["https://www.example.com", "examplebot", "1:0123456789abcdef:a b"]],
        [["https://www.example.com", "examplebot", "1:0123456789abcdef:"]],
        [["https://www.example.com", "examplebot", 7]],
        [GOOD, ["address:192.0.2.01", None, NAME]],
        [GOOD, ["address:fe80::1%eth0}", None, NAME]],
        [GOOD, ["address:2001:DB8::1", None, NAME]],
        [GOOD, ["192.0.2.1", None, NAME]],
    ],
)
def test_what_was_never_written_is_not_read(said: Any) -> None:
    with pytest.raises(BadPermit):
        read(encoded(said))


def test_one_permit_is_written_in_one_way() -> None:
    written = encoded([GOOD])
    spaced = base64.urlsafe_b64encode(json.dumps([GOOD], indent=1).encode()).rstrip(b"=").decode()
    for other in (f"{written}=", f"{written}!", f" {written}", f"{written}\n", f"{written[:5]}.{written[5:]}", spaced):
        with pytest.raises(BadPermit):
            read(other)


@given(st.text() | st.text(alphabet=st.characters(codec="ascii")) | st.binary().map(lambda it: encoded(it.hex())))
@example("\ud800")
@example(base64.urlsafe_b64encode(b"[" * 700).decode())
@example(base64.urlsafe_b64encode(b"1" * 700).decode())
@example("a" * 10**6)
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(BadPermit):
        read(text)
