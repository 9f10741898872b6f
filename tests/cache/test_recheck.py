"""Recheck models and the domain table (spec A21 to A23)."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.freshness import DAY, HOUR, MINUTE, LifetimePolicy, Recheck, Snapshot, delay
from app.cache.recheck import (
    LATEST,
    MODELS,
    RFC9309_MODEL,
    SEZNAM_MODEL,
    SOONEST,
    DomainTable,
    Model,
    Pace,
    VisitBasedRecheck,
    model,
)
from app.cache.recheck_file import load, read_table
from robots_core.robots.access import Successful

NOW = 1_790_000_000.0
KEY = "https://www.example.com"
EMPTY = DomainTable({})


def copy(lifetime: float | None = None) -> Snapshot:
    return Snapshot(Successful(200, b""), NOW, lifetime=lifetime)


# The models.


@pytest.mark.parametrize(
    ("visits", "days"),
    [
        (0.0, 21),
        (0.01, 21),
        (0.1, 21),
        (0.316228, 16.5),
        (1, 12),
        (3.16228, 7.5),
        (10, 3),
        (1e9, 3),
        (float("nan"), 21),
    ],
)
def test_seznam_rechecks_after_days_or_weeks_by_visits(visits: float, days: float) -> None:
    assert VisitBasedRecheck().recheck(visits).default == pytest.approx(days * DAY, rel=1e-5)


@pytest.mark.parametrize(
    ("visits", "lifetime", "days"),
    [
        (0.0, None, 21),
        (0.0, 60.0, 3),
        (0.0, 7 * DAY, 7),
        (0.0, 365 * DAY, 21),
        (1.0, 15 * DAY, 12),
        (10.0, 0.0, 3),
        (10.0, 15 * DAY, 3),
    ],
)
def test_seznam_a_lifetime_may_shorten_a_delay_but_never_extends_it(
    visits: float, lifetime: float | None, days: float
) -> None:
    waited = delay(copy(lifetime), VisitBasedRecheck().recheck(visits), KEY)
    assert max(0.9 * days, 3) * DAY <= waited <= min(1.1 * days, 21) * DAY


bounds = st.tuples(st.floats(MINUTE, 30 * DAY), st.floats(MINUTE, 30 * DAY)).map(sorted)
lifetimes = st.none() | st.floats(0, 2**31)
visits_a_day = st.floats(0, 1e6)
hosts = st.from_regex(r"[a-z]{1,12}\.example", fullmatch=True)


@given(bounds, lifetimes, visits_a_day, visits_a_day, hosts)
def test_more_visits_never_mean_a_longer_delay(
    bound: list[float], lifetime: float | None, one: float, other: float, host: str
) -> None:
    by_visits = VisitBasedRecheck(*bound)
    fewer, more = (delay(copy(lifetime), by_visits.recheck(visits), host) for visits in sorted((one, other)))
    assert more <= fewer


@given(bounds, lifetimes, visits_a_day, hosts)
def test_every_delay_is_within_its_bounds_after_the_spread(
    bound: list[float], lifetime: float | None, visits: float, host: str
) -> None:
    low, high = bound
    assert low <= delay(copy(lifetime), VisitBasedRecheck(low, high).recheck(visits), host) <= high
    assert SOONEST <= delay(copy(lifetime), VisitBasedRecheck().recheck(visits), host) <= LATEST
    assert low <= delay(copy(lifetime), Recheck(low, high, low), host) <= high


@given(st.floats(66, 27 * DAY), lifetimes, hosts)
def test_a_fixed_delay_is_fixed_but_for_its_spread(seconds: float, lifetime: float | None, host: str) -> None:
    fixed = model(read_table(f"example = {{delay = {seconds!r}}}"), host, SEZNAM_MODEL, SEZNAM_MODEL)
    assert isinstance(fixed, Recheck)
    assert 0.899 * seconds <= delay(copy(lifetime), fixed, host) <= 1.101 * seconds


# The choice of a model.

TABLE = read_table(
    """
    cz = {model = "seznam"}
    "blog.cz" = {delay = "2h"}
    "Straße.EXAMPLE" = {model = "seznam", max = "7d"}
    ".dotted.example" = {max = "12h"}
    "hurried.example" = {max = 7200}
    "slow.example" = {min = "2d"}
    "week.example" = {model = "rfc9309", max = "1w"}
    "192.0.2.1" = {delay = 90}
    "[2001:db8::1]" = {delay = 95.5}
    "_dmarc.example" = {delay = "1.5m"}
    """
)
HOURS2 = Recheck(1.8 * HOUR, 2.2 * HOUR, 2 * HOUR, LifetimePolicy.NONE)


@pytest.mark.parametrize(
    ("host", "own", "default", "expected"),
    [
        ("www.example.com", "rfc9309", "rfc9309", Recheck()),
        ("www.example.com", "rfc9309", "seznam", VisitBasedRecheck()),
        ("www.example.com", "seznam", "rfc9309", VisitBasedRecheck()),
        ("cz", "rfc9309", "rfc9309", VisitBasedRecheck()),
        ("a.b.cz", "rfc9309", "rfc9309", VisitBasedRecheck()),
        ("acz", "rfc9309", "rfc9309", Recheck()),
        ("cz.example.com", "rfc9309", "rfc9309", Recheck()),
        ("blog.cz", "seznam", "seznam", HOURS2),
        ("a.b.blog.cz", "rfc9309", "rfc9309", HOURS2),
        ("badblog.cz", "rfc9309", "rfc9309", VisitBasedRecheck()),
        ("www.xn--strae-oqa.example", "rfc9309", "rfc9309", VisitBasedRecheck(3 * DAY, 7 * DAY)),
        ("dotted.example", "rfc9309", "rfc9309", Recheck(5 * MINUTE, 12 * HOUR, 12 * HOUR)),
        ("www.dotted.example", "rfc9309", "rfc9309", Recheck(5 * MINUTE, 12 * HOUR, 12 * HOUR)),
        ("hurried.example", "seznam", "rfc9309", VisitBasedRecheck(2 * HOUR, 2 * HOUR)),
        ("slow.example", "rfc9309", "rfc9309", Recheck(2 * DAY, 2 * DAY, 2 * DAY)),
        ("slow.example", "seznam", "rfc9309", VisitBasedRecheck(2 * DAY, 21 * DAY)),
        ("week.example", "seznam", "seznam", Recheck(5 * MINUTE, 7 * DAY, DAY)),
        ("192.0.2.1", "rfc9309", "rfc9309", Recheck(81, 99, 90, LifetimePolicy.NONE)),
        ("192.0.2.11", "rfc9309", "rfc9309", Recheck()),
        ("_dmarc.example", "rfc9309", "rfc9309", Recheck(81, 99, 90, LifetimePolicy.NONE)),
    ],
)
def test_the_table_precedes_the_crawlers_model_and_the_default(
    host: str, own: str, default: str, expected: Model
) -> None:
    found = model(TABLE, host, own, default)
    assert type(found) is type(expected)
    for name in ("minimum", "maximum", "default", "obeys"):
        assert getattr(found, name, None) == pytest.approx(getattr(expected, name, None))


def test_an_ipv6_address_matches_only_itself() -> None:
    assert TABLE.row("2001:db8::1") is not None
    assert TABLE.row("2001:db8::11") is None


labels = st.sampled_from(["a", "b", "c"])
names = st.lists(labels, min_size=1, max_size=5).map(".".join)


@given(st.sets(names), names)
def test_the_longest_suffix_wins_in_any_table(suffixes: set[str], host: str) -> None:
    table = read_table("\n".join(f'"{suffix}" = {{delay = {60 + len(suffix)}}}' for suffix in suffixes))
    covering = [suffix for suffix in suffixes if host == suffix or host.endswith(f".{suffix}")]
    row = table.row(host)
    if not covering:
        assert row is None
    else:
        assert row is not None
        found = row[SEZNAM_MODEL]
        assert isinstance(found, Recheck)
        assert found.default == 60 + max(map(len, covering))


class CountingRows(dict[str, dict[str, Model]]):
    looks = 0

    def get(self, *arguments: object) -> None:  # type: ignore[override]
        self.looks += 1


def test_a_lookup_costs_one_probe_for_each_label() -> None:
    rows = CountingRows({f"host{number}.example": {} for number in range(1000)})
    assert DomainTable(rows).row("a.b.c.example") is None
    assert rows.looks == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "not TOML"),
        ("a = 1", "'a' has 1, where a table of model, delay, min, max, floor, cap, budget is expected"),
        ("a = {}", "'a' has no field"),
        (
            '"a.b" = {modell = "seznam"}',
            "'a.b' has an unknown field 'modell'; the fields are model, delay, min, max, floor, cap",
        ),
        ('[example.com]\nmodel = "seznam"', r"'example' has an unknown field 'com'.*a name with dots goes in quotes"),
        ('a = {model = "sez"}', "'a' has model = 'sez'; expected 'rfc9309' or 'seznam'"),
        ("a = {model = []}", r"'a' has model = \[\]"),
        ("a = {delay = true}", "'a' has delay = True; expected seconds"),
        ("a = {delay = nan}", "'a' has delay = nan; a delay lies between"),
        ('a = {delay = "soon"}', "'a' has delay = 'soon'; expected seconds"),
        ('a = {delay = "-1d"}', "'a' has delay = '-1d'"),
        ('a = {delay = "1d12h"}', "'a' has delay = '1d12h'"),
        ('a = {min = "٣d"}', "'a' has min = '٣d'"),
        ("a = {max = 59}", "'a' has max = 59; a delay lies between a minute and 30 days"),
        ('a = {max = "31d"}', "'a' has max = '31d'; a delay lies between a minute and 30 days"),
        (f"a = {{max = 0x{'f' * 5000}}}", "'a' has max = a int; a delay lies between"),
        ("a = {delay = 1979-05-27}", "'a' has delay = datetime.date.* expected seconds"),
        ('a = {min = "2d", max = "1d"}', "'a' has min = 172800 s, more than max = 86400 s"),
        ('a = {delay = "2d", max = "3d"}', "'a' has a delay, which is fixed"),
        ('A = {delay = "1d"}\na = {delay = "1d"}', "'A' and 'a' are the same"),
        ('"b.a" = {delay = "1d"}\n".b.a." = {delay = "1d"}', "'b.a' and '.b.a.' are the same"),
        ('"*.a" = {delay = "1d"}', r"'\*.a' is not a host name"),
        ('"..a" = {delay = "1d"}', "'..a' is not a host name"),
        ('"" = {delay = "1d"}', "'' is not a host name"),
        ('"http://a" = {delay = "1d"}', "'http://a' is not a host name"),
        ('"a:80" = {delay = "1d"}', "'a:80' is not a host name"),
        ('"a/b" = {delay = "1d"}', "'a/b' is not a host name"),
        ('"[::1]:80/x" = {delay = "1d"}', r"'\[::1\]:80/x' is not a host name"),
        ('"2.1" = {delay = "1d"}', "'2.1' is not a host name"),
        ("a = {floor = 86401}", "'a' has floor = 86401; a pace lies between 0 seconds and a day"),
        ("a = {floor = -1}", "'a' has floor = -1; a pace lies between"),
        ('a = {cap = "2d"}', "'a' has cap = '2d'; a pace lies between"),
        ("a = {cap = nan}", "'a' has cap = nan; a pace lies between"),
        ('a = {floor = "fast"}', "'a' has floor = 'fast'; expected seconds"),
        ('a = {floor = "1m", cap = 59}', "'a' has floor = 60 s, more than cap = 59 s"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_an_invalid_table_is_named_by_suffix_and_field(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(text)


@given(
    st.text(max_size=60) | st.from_regex(r'"[a-z.]{1,8}" = \{(min|max|delay|model) = ("[0-9smhd.]{0,4}"|[0-9.e+]*)\}')
)
def test_any_text_can_be_read(text: str) -> None:
    with suppress(ValueError):
        assert all(row.keys() == MODELS.keys() for row in read_table(text).rows.values())


# Paces.

PACES = read_table(
    """
    example = {floor = 5, cap = "1m"}
    "slow.example" = {floor = "2m", cap = "1h"}
    "daily.example" = {delay = "1d"}
    "www.slow.example" = {cap = 30.5}
    "both.example" = {model = "seznam", floor = 0}
    """
)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example", Pace(5, 60)),
        ("a.example", Pace(5, 60)),
        ("a.slow.example", Pace(120, 3600)),
        ("daily.example", Pace(5, 60)),
        ("www.slow.example", Pace(None, 30.5)),
        ("both.example", Pace(0, None)),
        ("anexample", None),
    ],
)
def test_the_longest_suffix_with_a_pace_counts(host: str, expected: Pace | None) -> None:
    assert PACES.pace(host) == expected


def test_paces_and_rechecks_are_independent() -> None:
    assert set(PACES.rows) == {"daily.example", "both.example"}
    assert set(PACES.paces) == {"example", "slow.example", "www.slow.example", "both.example"}
    assert PACES.row("slow.example") is None
    assert model(PACES, "www.slow.example", RFC9309_MODEL, RFC9309_MODEL) == Recheck()
    assert model(PACES, "both.example", RFC9309_MODEL, RFC9309_MODEL) == VisitBasedRecheck()


# The file, and SIGHUP.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "recheck.toml"
    file.write_bytes('\ufeff"a.example" = {delay = "2h"}\r\n'.encode())
    return file


@pytest.mark.parametrize(
    ("data", "message"), [(b"a = \xff", "not UTF-8"), (b"#" * (32 * 1024 * 1024 + 1), "longer than")]
)
def test_a_file_that_cannot_be_read_is_refused(path: Path, data: bytes, message: str) -> None:
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        load(path)
    with pytest.raises(ValueError, match="cannot be opened"):
        load(path.parent)
