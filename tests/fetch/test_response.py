"""Fields, Location, Retry-After and content coding, from bytes."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.compression import zstd
from app.fetch.response import (
    FIELD_LIMIT,
    LONGEST_WAIT,
    Body,
    Headers,
    Unreadable,
    decoder,
    field,
    listed,
    read_location,
    retry_after,
)
from robots_core.origin import Origin, Target
from robots_core.robots.access import BODY_LIMIT

_gzip = partial(gzip.compress, mtime=0)  # deterministic, since test names contain its output

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"0", 0),
        (b"120", 120),
        (b"86400", LONGEST_WAIT),
        (b"86401", LONGEST_WAIT),
        (b"9" * 1000, LONGEST_WAIT),
        (b"Sun, 06 Nov 1994 08:51:37 GMT", 120),
        (b"Sunday, 06-Nov-94 08:51:37 GMT", 120),
        (b"Sun Nov  6 08:51:37 1994", 120),
        (b"Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT),
        (b"Sun, 06 Nov 1994 08:49:36 GMT", None),
        (b"-5", None),
        (b"+5", None),
        (b"1.5", None),
        (b"soon", None),
        (b"", None),
        (b"\xb2", None),
        (b"Sun, 99 Nov 1994 08:49:37 GMT", None),
        (b"1 Jan 2000 10:10:10 -99999999999999999999", None),
        (b"9" * 5000, None),  # over FIELD_LIMIT
        (b"0" * 1000 + b"7", 7),
        (b"Sun, 06 Nov 1994 08:51:37", 120),
        (b"1994-11-06T08:51:37Z", 120),
    ],
)
def test_rfc9110_retry_after_is_seconds_or_a_date_and_a_day_at_most(value: bytes, seconds: int | None) -> None:
    assert retry_after([(b"Retry-After", value)], NOW) == seconds


@given(st.binary(max_size=60))
def test_retry_after_is_bounded_and_never_an_error(value: bytes) -> None:
    seconds = retry_after([(b"retry-after", value)], NOW)
    assert seconds is None or 0 <= seconds <= LONGEST_WAIT


BASE = Target(Origin("https", "www.example.com", 443), "/a/robots.txt?x=1")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        (b"http://other.example/robots2.txt?x", "http://other.example/robots2.txt?x"),
        (b"//other.example:8443/r", "https://other.example:8443/r"),
        (b"/r.txt", "https://www.example.com/r.txt"),
        (b"r.txt", "https://www.example.com/a/r.txt"),
        (b"../../../r.txt", "https://www.example.com/r.txt"),
        (b"?y=2", "https://www.example.com/a/robots.txt?y=2"),
        (b"HTTPS://OTHER.example/R", "https://other.example/R"),
        (b"http://user:secret@other.example/r", "http://other.example/r"),
        (b"/r.txt#part", "https://www.example.com/r.txt"),
        ("/röbots".encode(), "https://www.example.com/r%C3%B6bots"),
        (b"/r\xf6bots", "https://www.example.com/r%F6bots"),
        (b"/a b\x01c\x7f<>%41%", "https://www.example.com/a%20b%01c%7F%3C%3E%41%"),
        ("http://bücher.example/".encode(), "http://xn--bcher-kva.example/"),
        (b"/x?u=\\y", "https://www.example.com/x?u=%5Cy"),
        (b"http://other.example/\ta", "http://other.example/%09a"),
    ],
)
def test_a_location_is_resolved_and_sent_percent_encoded(location: bytes, url: str | None) -> None:
    target = read_location(BASE, [(b"Location", location)])
    assert (target.url if target else None) == url


@pytest.mark.parametrize(
    "locations",
    [
        [],
        [b""],
        [b"/one", b"/two"],
        [b"/" + b"a" * 20_000],
        [b"http:///x"],
        [b"http://"],
        [b"http://[::1"],
        [b"http://[v1.x]/"],
        [b"http://[fe80::1%25eth0]/"],
        [b"http://127.1/"],
        [b"http://other.example:99999/"],
        [b"http://a b/"],
        [b"http://a\tb.example/"],
        ["http://a\u2100b/".encode()],
        [b"http:\\\\evil.example"],
        *([it] for it in (b"///x", b"//", b"//?x", b"http:/x", b"https:x", b"HTTP:", b"http://?x", b"http://#x")),
        *([it] for it in (b"\\x", b"\\\\evil.example/x", b"/\\evil.example", b"a\\b", b"http://h\\x")),
        *([it] for it in (b"other.example:80/x", b"localhost:8080", b"other.example:/x", b"127.0.0.1:80/x")),
    ],
)
def test_a_missing_or_invalid_location_is_unreadable(locations: list[bytes]) -> None:
    with pytest.raises(Unreadable):
        read_location(BASE, [(b"location", value) for value in locations])


@pytest.mark.parametrize(
    "location", [b"file:///etc/passwd", b"ftp://other.example/robots.txt", b"javascript:alert(1)", b"data:,x", b"a:"]
)
def test_spec_a9_a_location_of_another_scheme_is_not_followed(location: bytes) -> None:
    assert read_location(BASE, [(b"Location", location)]) is None


@given(st.binary(max_size=80) | st.builds(lambda tail: b"http://" + tail, st.binary(max_size=80)))
def test_a_request_line_has_only_printable_ascii(location: bytes) -> None:
    try:
        target = read_location(BASE, [(b"Location", location)])
    except Unreadable:
        return
    if target is not None:
        assert target.path.startswith("/")
        assert all("!" <= character <= "~" for character in target.url)


@pytest.mark.parametrize("value", [b"", b"a" * (FIELD_LIMIT + 1), b"a\x01b", b"a\x7f", b"\x85", b"a\r\nb"])
def test_a_long_or_unprintable_field_counts_as_absent(value: bytes) -> None:
    assert field([(b"ETag", value)], b"etag") is None


def test_field_names_ignore_case_and_lists_are_joined() -> None:
    headers: Headers = [(b"CACHE-control", b" max-age=5"), (b"X", b"y"), (b"Cache-Control", b"private\t")]
    assert field(headers, b"cache-control") == "max-age=5"
    assert listed(headers, b"cache-control") == "max-age=5, private"
    assert listed([], b"a") is None


def bare_deflate(content: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(content) + compressor.flush()


CODINGS: dict[bytes, Callable[[bytes], bytes]] = {
    b"": lambda content: content,
    b"identity": lambda content: content,
    b"gzip": _gzip,
    b"X-Gzip": _gzip,
    b"gzip, identity": _gzip,
    b"deflate": zlib.compress,
    b"Deflate": bare_deflate,
    b"zstd": zstd.compress,
    b"br": brotli.compress,
    b"none, GZIP": _gzip,
    b"x": _gzip,
    **dict.fromkeys(
        map(str.encode, ["none", "utf-8", "text/plain", "binary", "8bit", "null", "aws-chunked", "gzip;q=1", "ÿ"]),
        bytes,
    ),
}


def decoded(coding: bytes, pieces: list[bytes]) -> Body:
    body = Body(decoder([(b"Content-Encoding", coding)] if coding else []))
    for piece in pieces:
        body.feed(piece)
    return body


def pieces_of(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("coding", CODINGS)
@given(content=st.binary(max_size=300).filter(lambda it: it[:1] != b"\x1f"), size=st.integers(1, 40))
def test_rfc9110_a_body_is_decoded_however_it_is_split(coding: bytes, content: bytes, size: int) -> None:
    body = decoded(coding, pieces_of(CODINGS[coding](content), size))
    assert body.read() == content
    assert not body.truncated


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("more", [-1, 0, 1, 1_000_000])
def test_spec_a24_the_limit_counts_decoded_bytes(coding: bytes, more: int) -> None:
    content = b"a" * (BODY_LIMIT + more)
    body = decoded(coding, pieces_of(CODINGS[coding](content), 16_384))
    assert body.read() == content[:BODY_LIMIT]
    assert body.truncated is (more > 0)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(("beyond", "kept"), [(b"\n", 1), (b"\r", 1), (b"#", 1), (b"\0", 1), (b" ", 0), (b"a", 0)])
def test_spec_a24_the_byte_beyond_the_limit_is_kept_if_it_ends_a_rule(coding: bytes, beyond: bytes, kept: int) -> None:
    content = b"a" * BODY_LIMIT + beyond
    body = decoded(coding, pieces_of(CODINGS[coding](content + b"more"), 16_384))
    assert body.read() == content[: BODY_LIMIT + kept]
    assert body.truncated


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_rfc1952_all_gzip_members_are_read_and_padding_is_ignored(size: int) -> None:
    data = _gzip(b"one ") + _gzip(b"") + _gzip(b"two")
    assert decoded(b"gzip", pieces_of(data + b"\0" * 20, size)).read() == b"one two"


@pytest.mark.parametrize("coding", [*CODINGS, b"compress", b"gzip, gzip"])
def test_no_bytes_are_an_empty_body_in_any_coding(coding: bytes) -> None:
    assert decoded(coding, []).read() == b""


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", _gzip(b"User-agent: *")[:-1]),
        (b"gzip", _gzip(b"User-agent: *")[:-8] + b"\0" * 8),
        (b"gzip", _gzip(b"one") + _gzip(b"two")[:12]),
        (b"deflate", b"x"),
        (b"deflate", zlib.compress(b"User-agent: *")[:-1]),
        (b"deflate", b"\x78\x9cgarbage"),
        (b"", _gzip(b"User-agent: *")[:-1]),
        (b"utf-8", _gzip(b"User-agent: *")[:-1]),
        (b"zstd", zstd.compress(b"User-agent: *")[:-1]),
        (b"zstd", b"User-agent: *"),
        (b"br", brotli.compress(b"User-agent: *")[:-1]),
        (b"br", b"User-agent: *"),
        (b"compress", b"x"),
        (b"gzip, gzip", _gzip(_gzip(b"x"))),
        (b"br, gzip", b"x"),
    ],
)
def test_a_body_invalid_in_its_coding_is_unreadable(coding: bytes, data: bytes) -> None:
    with pytest.raises(Unreadable):
        decoded(coding, pieces_of(data, 5)).read()


@pytest.mark.parametrize("coding", CODINGS)
@given(data=st.binary(max_size=200))
def test_any_bytes_decode_or_are_unreadable(coding: bytes, data: bytes) -> None:
    with suppress(Unreadable):
        decoded(coding, pieces_of(data, 16)).read()
