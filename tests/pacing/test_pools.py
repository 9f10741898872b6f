"""Which pool an origin is in: by PACE_BY, the domain table and the public suffix list."""

import pytest

from app.cache.recheck_file import read_table
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from app.pacing.pools import PaceBy, pool_of
from robots_core.origin import read_target

TABLE = read_table("""
"slow.example" = {floor = "10s"}
[pools]
shop = ["shop.example", "cdn.example.com", "192.0.2.7"]
"Other.1" = ["img.shop.example"]
""")


@pytest.mark.parametrize(
    ("url", "pool"),
    [
        ("https://www.shop.example/a", "pool:shop"),
        ("http://shop.example:8080/", "pool:shop"),
        ("https://a.img.shop.example/", "pool:Other.1"),
        ("https://myshop.example/", "myshop.example"),
        ("http://192.0.2.7/", "pool:shop"),
        ("https://example.com/", "example.com"),
        ("https://slow.example/", "slow.example"),
    ],
)
def test_a_pool_of_the_table_has_the_hosts_of_its_suffixes(url: str, pool: str) -> None:
    assert pool_of(read_target(url).origin, PaceBy.HOST, TABLE, str) == pool


@pytest.mark.parametrize(
    ("url", "origin", "host", "domain"),
    [
        ("https://www.example.com/", "https://www.example.com", "www.example.com", "example.com"),
        ("http://www.example.com:8080/", "http://www.example.com:8080", "www.example.com", "example.com"),
        ("https://a.b.example.co.uk/", "https://a.b.example.co.uk", "a.b.example.co.uk", "example.co.uk"),
        ("https://one.github.io/", "https://one.github.io", "one.github.io", "one.github.io"),
        ("https://github.io/", "https://github.io", "github.io", "github.io"),
        ("https://www.bücher.de/", "https://www.xn--bcher-kva.de", "www.xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("http://127.0.0.1:81/", "http://127.0.0.1:81", "127.0.0.1", "127.0.0.1"),
        ("http://[2001:db8::1]/", "http://[2001:db8::1]", "[2001:db8::1]", "[2001:db8::1]"),
        ("http://a.corp.internal/", "http://a.corp.internal", "a.corp.internal", "a.corp.internal"),
        ("http://localhost/", "http://localhost", "localhost", "localhost"),
    ],
)
def test_pace_by_chooses_the_pool(url: str, origin: str, host: str, domain: str) -> None:
    for by, pool in zip(PaceBy, (origin, host, domain), strict=True):
        settings = Settings(pace_by=by.value)
        assert OperatorFiles(settings).pool_of(read_target(url).origin.with_profile("google")) == pool


def test_an_unknown_suffix_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(pace_by="domain")
    pool = OperatorFiles(settings).pool_of
    for host in ("a.corp.internal", "b.corp.internal", "printer.lan", "www.example.com", "10.0.0.1"):
        pool(read_target(f"http://{host}/").origin)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert [".internal" in said[0], ".lan" in said[1]] == [True, True]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('pools = ["example.com"]', "is a table"),
        ("[pools]\nshop = []", "list of host suffixes"),
        ('[pools]\nshop = "shop.example"', "list of host suffixes"),
        ('[pools]\n"a b" = ["shop.example"]', "needs a name"),
        ('[pools]\nshop = ["https://shop.example"]', "not a host name"),
        ('[pools]\na = ["shop.example"]\nb = [".shop.example"]', "in the pools 'a' and 'b'"),
    ],
)
def test_a_table_of_pools_that_cannot_be_read_is_refused(table: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_table(table)
