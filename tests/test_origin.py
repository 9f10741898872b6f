"""Parsing URLs: spec A2, A3, A31, D6."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.origin import URL_LIMIT, BadUrl, read_key, read_suffix, read_target


@pytest.mark.parametrize(
    ("url", "key", "path"),
    [
        ("http://EXAMPLE.com:80/a?b#c", "http://example.com", "/a?b"),
        ("HTTPS://example.com:443", "https://example.com", "/"),
        ("https://example.com:80/", "https://example.com:80", "/"),
        ("http://example.com:/x", "http://example.com", "/x"),
        ("http://example.com?q", "http://example.com", "/?q"),
        ("http://example.com#f", "http://example.com", "/"),
        ("http://user:p@ss@h.example/x", "http://h.example", "/x"),
        ("http://h.example./x", "http://h.example", "/x"),
        ("http://h/a//b/../c/./d", "http://h", "/a//b/../c/./d"),
        ("http://h/a\\b c\t", "http://h", "/a\\b c\t"),
        ("http://h/?u=http://x/@y#z", "http://h", "/?u=http://x/@y"),
        ("http://bücher.example/", "http://xn--bcher-kva.example", "/"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example", "/"),
        ("http://ＥＸＡＭＰＬＥ。com/", "http://example.com", "/"),
        ("http://faß.de/", "http://xn--fa-hia.de", "/"),
        ("http://www.m%C3%BCnich.com/x", "http://www.xn--mnich-kva.com", "/x"),
        ("http://www.M%c3%9cNICH.com:8080", "http://www.xn--mnich-kva.com:8080", "/"),
        ("http://m%C3%BCnich\u3002c%6Fm/%2F", "http://xn--mnich-kva.com", "/%2F"),
        ("http://mu%CC%88nich.com/", "http://xn--mnich-kva.com", "/"),
        ("http://h%2e/", "http://h", "/"),
        ("http://127%2E0.0.1/", "http://127.0.0.1", "/"),
        ("http://a_b.example/", "http://a_b.example", "/"),
        ("http://127.0.0.1:8001/", "http://127.0.0.1:8001", "/"),
        ("http://[::1]:8080/", "http://[::1]:8080", "/"),
        ("http://[2001:DB8:0:0::1]/", "http://[2001:db8::1]", "/"),
    ],
)
def test_a3_one_origin_has_one_key(url: str, key: str, path: str) -> None:
    target = read_target(url)
    assert (target.origin.key, target.path) == (key, path)
    assert target.origin.robots_url == f"{key}/robots.txt"
    assert read_target(target.url) == target


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com/x",
        "//example.com/x",
        "/x",
        "ftp://h/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http:example.com",
        "http:\\\\example.com",
        "http://127.0.0.1\\@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com\\path",
        "http://",
        "http:///x",
        "http://@/",
        "http://h:0/",
        "http://h:65536/",
        "http://h:80x/",
        "http://h:٣/",
        "http://h:-1/",
        "http://h h/",
        "http://h\t/",
        "http://h\\x/",
        "http://h%2Fx/",
        "http://h%40g.example/",
        "http://h%3A80/",
        "http://h%3Fx/",
        "http://h%23x/",
        "http://h%5Cx/",
        "http://%5B::1%5D/",
        "http://h%00/",
        "http://h%00.example/",
        "http://h%20/",
        "http://h%0A/",
        "http://m%C3nich.com/",
        "http://m%FCnich.com/",
        "http://m%C3ünich.com/",
        "http://h%C0%AFx/",
        "http://h%ED%A0%80/",
        "http://m%25C3%25BCnich.com/",
        "http://h%EF%BC%8Fx/",
        "http://h%EF%BC%85x/",
        "http://h%/",
        "http://h%4/",
        "http://h%zz/",
        "http://%/",
        "http://%2E/",
        "http://0x7f%2E1/",
        "http://" + "%C3%A9" * 300 + ".example/",
        "http://a..b/",
        "http://-a.b/",
        "http://.a/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 127 + "b/",
        "http://" + "é" * 300 + ".example/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[1.2.3.4]/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://1.2.3.256/",
        "http://xn--/",
        "http://\ud800/",
        "http://h/\udfff",
        "http://h/" + "a" * URL_LIMIT,
        "http://h/" + "é" * (URL_LIMIT // 2),
    ],
)
def test_a31_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(BadUrl) as refused:
        read_target(url)
    assert len(str(refused.value)) < 700


@given(st.text(max_size=200))
def test_a31_any_text_is_a_target_or_is_refused(rest: str) -> None:
    for url in (rest, "http://" + rest, "http://h/" + rest, "https://[" + rest):
        try:
            target = read_target(url)
        except BadUrl:
            continue
        assert target.path.startswith("/")
        assert read_target(target.url) == target


def test_an_origin_with_a_profile_is_another_one_with_the_same_url() -> None:
    origin = read_target("https://www.example.com:8443/a").origin
    profiled = origin.with_profile("acme")
    assert profiled != origin
    assert profiled.key == "https://www.example.com:8443#acme"
    assert profiled.robots_url == origin.robots_url
    assert profiled.with_profile("acme") is profiled
    assert profiled.with_profile(None) == origin


@pytest.mark.parametrize(
    "key", ["https://a.test", "http://[2001:db8::1]:8080", "https://a.test#acme", f"http://a.test:81#{'a' * 32}"]
)
def test_a_key_is_read_as_its_origin(key: str) -> None:
    origin = read_key(key)
    assert origin is not None
    assert origin.key == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "a.test",
        "https://a.test:443",
        "https://a.test/",
        "https://a.test#",
        "https://a.test#a b",
        "https://a.test#a#b",
    ],
)
def test_any_other_text_is_no_key(key: str) -> None:
    assert read_key(key) is None


@pytest.mark.parametrize(
    ("text", "suffix"),
    [("Example.COM.", "example.com"), (".example.com", "example.com"), ("[2001:DB8::1]", "2001:db8::1"), ("a", "a")],
)
def test_a_host_suffix_has_one_normal_form(text: str, suffix: str) -> None:
    assert read_suffix(text) == suffix


@pytest.mark.parametrize(
    "text", ["", ".", "..a", "*.a", "a:80", "[::1]:80", "http://a", "a/b", "a?b", "a#b", "u@a", "a\\b", "2.1", "\ud800"]
)
def test_a_host_suffix_is_only_a_host(text: str) -> None:
    with pytest.raises(BadUrl):
        read_suffix(text)


@pytest.mark.parametrize("last", ["a", "\u00fc"])
def test_a_host_name_has_at_most_253_characters(last: str) -> None:
    """RFC 1035 2.3.4: 255 octets, of which one is the first label's length and one the root's."""
    ascii_ = "a" if last == "a" else "xn--tda"
    start = ".".join(["a" * 63] * 3) + "."
    for length, is_read in (252, True), (253, True), (254, False), (255, False):
        label = "b" * (length - len(start) - len(ascii_) - 1)
        for root in "", ".":
            url = f"http://{start}{label}.{last}{root}/"
            if is_read:
                assert len(read_target(url).origin.host) == length
            else:
                with pytest.raises(BadUrl):
                    read_target(url)
