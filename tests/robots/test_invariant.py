"""The invariant of `make fuzz`, for inputs from hypothesis."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.invariant import check

PIECES = st.sampled_from(
    [
        b"User-agent: a\n",
        b"user-agent:*\r\n",
        b"User-agent: bingbot\n",
        b"Robot-version: 2.0\n",
        b"Disallow: /",
        b"Allow: /*",
        b"Disallow: /[a-",
        b"Request-rate: 1/5s 2300-0059\n",
        b"Crawl-delay: 9.5\n",
        b"Content-Usage: /x train-ai=n\n",
        b"Content-Signal: search=no\r",
        b"%7E%2f\n",
        b"?a=b:c$\n",
        b"\n",
        b"\0",
        b"\xef\xbb\xbf",
        b"# ",
    ]
)


@settings(max_examples=300)
@given(st.binary(min_size=3, max_size=3), st.binary(max_size=20), st.lists(PIECES | st.binary(max_size=6), max_size=25))
def test_any_bytes_keep_the_invariant(head: bytes, path: bytes, pieces: list[bytes]) -> None:
    check(head[:2] + bytes([len(path)]) + path + b"".join(pieces))
