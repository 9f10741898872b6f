"""The overrides that hold for an origin and a crawler, the one that decides, and invalid ones."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.overrides.override_json import BadOverride, read_override, write_override
from app.overrides.table import Override, Table
from robots_core.origin import Origin, read_target
from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.agents import read_agent

NOW = 1_790_000_000.0
WWW = Origin("https", "www.example.com", 443)
BOT = read_agent("ExampleBot/1.0")


def override(id_: str = "one", **members: Any) -> Override:
    return read_override(id_, {"scope": "example.com", "action": "deny", "reason": "because", **members})


def deciding(*overrides: Override, url: str = "https://www.example.com/", agent: str = "ExampleBot") -> str | None:
    found = Table(overrides).find(read_target(url).origin, read_agent(agent), NOW)
    return None if found is None or found.deciding is None else found.deciding.id


def delaying(*overrides: Override) -> str | None:
    found = Table(overrides).find(WWW, BOT, NOW)
    return None if found is None or found.delaying is None else found.delaying.id


@pytest.mark.parametrize(
    ("scope", "url", "holds"),
    [
        ("example.com", "https://example.com/", True),
        ("example.com", "http://a.b.example.com:8080/", True),
        (".Example.COM.", "https://www.example.com/", True),
        ("example.com", "https://notexample.com/", False),
        ("example.com", "https://example.com.evil.example/", False),
        ("münchen.example", "https://www.xn--mnchen-3ya.example/", True),
        ("https://www.example.com", "https://www.example.com/", True),
        ("https://www.example.com:443/", "https://WWW.example.com./x", True),
        ("https://www.example.com", "http://www.example.com/", False),
        ("https://www.example.com", "https://www.example.com:8443/", False),
        ("https://www.example.com", "https://a.www.example.com/", False),
        ("192.0.2.1", "http://192.0.2.1:8080/", True),
        ("[2001:db8::1]", "http://[2001:DB8::1]/", True),
        ("com", "https://www.example.com/", True),
    ],
)
def test_a_scope_is_an_origin_or_a_name_and_all_below_it(scope: str, url: str, holds: bool) -> None:
    assert deciding(override(scope=scope), url=url) == ("one" if holds else None)


@pytest.mark.parametrize(
    ("agents", "agent", "holds"),
    [
        ([], "ExampleBot", True),
        (["examplebot"], "ExampleBot/2.1 (+http://bot.example)", True),
        (["otherbot", "ExampleBot/1.0"], "ExampleBot", True),
        (["otherbot"], "ExampleBot", False),
        (["Googlebot"], "Googlebot-Image", True),  # it falls back to the groups of Googlebot
        (["Googlebot-Image"], "Googlebot", False),
    ],
)
def test_overrides_match_agents_as_groups_do(agents: list[str], agent: str, holds: bool) -> None:
    assert deciding(override(agents=agents), agent=agent) == ("one" if holds else None)


def test_the_narrowest_scope_decides() -> None:
    origin = override("origin", scope="https://www.example.com", action="allow")
    long = override("long", scope="www.example.com", action="robots", robots="")
    short = override("short", scope="example.com", action="deny", agents=["ExampleBot"])
    assert deciding(short, long, origin) == "origin"
    assert deciding(short, long) == "long"
    assert deciding(short) == "short"


def test_in_one_scope_named_crawlers_precede_then_effect_then_id() -> None:
    named = override("z", action="allow", agents=["ExampleBot"])
    deny, later_deny = override("b"), override("c")
    robots, allow = override("a", action="robots", robots=""), override("0", action="allow")
    assert deciding(allow, robots, later_deny, deny, named) == "z"
    assert deciding(allow, robots, later_deny, deny) == "b"
    assert deciding(allow, robots) == "a"


def test_the_smallest_budget_holds_and_budgets_never_decide() -> None:
    small = override("small", scope="com", action="budget", budget=10)
    large = override("large", scope="https://www.example.com", action="budget", budget=20)
    found = Table([large, small]).find(WWW, BOT, NOW)
    assert found is not None
    assert (found.deciding, found.delaying, found.limiting, found.budget) == (None, None, small, 10)
    found = Table([large, override()]).find(WWW, BOT, NOW)
    assert found is not None
    assert (found.deciding, found.budget) == (override(), 20)
    found = Table([override()]).find(WWW, BOT, NOW)
    assert found is not None
    assert found.budget is None


def test_the_longest_delay_holds_and_delays_never_decide() -> None:
    long = override("long", scope="com", action="delay", delay=20)
    short = override("short", scope="https://www.example.com", action="delay", delay=5)
    assert delaying(short, long) == "long"
    assert deciding(short, long) is None
    assert (deciding(short, override()), delaying(short, override())) == ("one", "short")


def test_an_expired_override_has_no_effect() -> None:
    assert deciding(override(expires_at=NOW)) is None
    assert deciding(override(expires_at=NOW + 1)) == "one"
    assert deciding(override("a", expires_at=NOW - 1), override("b", action="allow")) == "b"


def test_a_shadow_decides_among_shadows_only() -> None:
    shadow = override("shadow", scope="https://www.example.com", shadow=True)
    delay = override("delay", action="delay", delay=9, shadow=True)
    found = Table([shadow, delay, override("real", action="allow")]).find(WWW, BOT, NOW)
    assert found is not None
    assert found.deciding is not None
    assert (found.deciding.id, found.delaying) == ("real", None)
    assert (found.shadow_deciding, found.shadow_delaying) == (shadow, delay)


def test_an_empty_table_is_false_and_finds_nothing() -> None:
    assert not Table()
    assert Table([override(scope="example.org")]).find(WWW, BOT, NOW) is None


def test_overrides_of_an_origin_are_in_order_of_precedence() -> None:
    those = [override("c", scope="com"), override("b"), override("a", scope="https://www.example.com", expires_at=1)]
    assert [one.id for one in Table(those).at(WWW)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("members", "field", "message"),
    [
        ({"scope": None}, "scope", "scope is None: expected an origin like"),
        ({"scope": "*.example.com"}, "scope", "not a host name"),
        ({"scope": "ftp://example.com"}, "scope", "use http or https"),
        ({"scope": "https://example.com/private"}, "scope", "no user, no path and no query"),
        ({"scope": "https://user@example.com"}, "scope", "no user, no path and no query"),
        ({"scope": "https://example.com?x"}, "scope", "no user, no path and no query"),
        ({"scope": "https://example.com#x"}, "scope", "no user, no path and no query"),
        ({"scope": "example.com:8080"}, "scope", "scope is 'example.com:8080': a host suffix has .*no port"),
        ({"scope": "example.com:80"}, "scope", "no port"),
        ({"scope": "example.com/"}, "scope", "no path"),
        ({"scope": "2.1"}, "scope", "IPv4"),
        ({"scope": "a" * 401}, "scope", "expected an origin like"),
        ({"scope": "\ud800.example"}, "scope", "surrogate"),
        ({"agents": "ExampleBot"}, "agents", "agents is 'ExampleBot': expected a valid list"),
        ({"agents": ["*"]}, "agents", "leave agents out"),
        ({"agents": ["FooBot, BarBot"]}, "agents", "one crawler in each item"),
        ({"agents": ["ok", 7]}, "agents", "agents is 7: expected a valid string"),
        ({"agents": [""]}, "agents", "no product token"),
        ({"agents": ["a"] * 33}, "agents", "at most 32"),
        ({"action": "open"}, "action", "action is 'open': expected 'allow', 'deny', 'robots', 'delay' or 'budget'"),
        ({"action": ["deny"]}, "action", "expected 'allow'"),
        ({"robots": ""}, "robots", "belongs to the action 'robots' only"),
        ({"delay": 1}, "delay", "delay is 1: it belongs to the action 'delay' only, so leave it out"),
        ({"action": "robots"}, "robots", "robots is None: the action 'robots' needs it"),
        ({"action": "robots", "robots": "a" * (BODY_LIMIT + 1)}, "robots", "512001 bytes"),
        ({"action": "robots", "robots": "\ud800"}, "robots", "lone surrogate"),
        ({"action": "delay"}, "delay", "the action 'delay' needs it"),
        ({"action": "budget"}, "budget", "the action 'budget' needs it"),
        ({"action": "budget", "budget": 0}, "budget", "budget is 0: expected greater than or equal to 1"),
        ({"action": "budget", "budget": 10**10}, "budget", "less than or equal to 1000000000"),
        ({"action": "budget", "budget": 1.5}, "budget", "expected a valid integer"),
        ({"action": "delay", "delay": 1, "budget": 2}, "budget", "it belongs to the action 'budget' only"),
        ({"action": "budget", "budget": 2, "shadow": True}, "shadow", "a budget changes no answer"),
        ({"action": "delay", "delay": 0}, "delay", "delay is 0: expected greater than 0"),
        ({"action": "delay", "delay": 86_401}, "delay", "less than or equal to 86400"),
        ({"action": "delay", "delay": True}, "delay", "expected a valid number"),
        ({"action": "delay", "delay": float("nan")}, "delay", "expected a finite number"),
        ({"action": "delay", "delay": 10**400}, "delay", "expected a valid number"),
        ({"reason": None}, "reason", "expected a valid string"),
        ({"reason": " "}, "reason", "one line of printable text"),
        ({"reason": "a" * 501}, "reason", "at most 500"),
        ({"reason": "a\nb"}, "reason", "one line of printable text"),
        ({"reason": "\ud800"}, "reason", "expected a valid string"),
        ({"expires_at": "tomorrow"}, "expires_at", "expected a valid number"),
        ({"expires_at": -1}, "expires_at", "greater than or equal to 0"),
        ({"expires_at": 253_402_300_800}, "expires_at", "less than or equal to 253402300799"),
        ({"expires_at": 10**400}, "expires_at", "expected a valid number"),
        ({"shadow": 1}, "shadow", "shadow is 1: expected a valid boolean"),
    ],
)
def test_an_invalid_override_is_named_by_its_member(members: Mapping[str, Any], field: str, message: str) -> None:
    with pytest.raises(BadOverride, match=message) as caught:
        override(**members)
    assert caught.value.field == field


@pytest.mark.parametrize("id_", ["", "audit", "a b", "ä", ".a", "a/b", "a" * 65, "a\n"])
def test_an_invalid_id_is_refused(id_: str) -> None:
    with pytest.raises(BadOverride) as caught:
        override(id_)
    assert caught.value.field == "id"


@pytest.mark.parametrize(
    "members",
    [
        {"action": "allow", "agents": ["B", "a", "b"], "expires_at": NOW},
        {"scope": "http://[2001:db8::1]:8080", "shadow": True},
        {"action": "robots", "robots": "User-agent: ü\nDisallow: /\x00"},
        {"action": "delay", "delay": 0.5, "reason": "Zähne"},
        {"action": "budget", "budget": 1000},
    ],
)
def test_a_written_override_is_read_back(members: Mapping[str, Any]) -> None:
    one = override(**members)
    assert read_override(one.id, write_override(one)) == one


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), lambda one: st.lists(one, max_size=3)
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(write_override(override()), JSON)), st.text(max_size=4))
def test_any_members_can_be_read(members: dict[str, object], id_: str) -> None:
    try:
        read = read_override(id_, {"scope": "example.com", "action": "deny", "reason": "x", **members})
    except BadOverride as error:
        field = error.field
    else:
        field = "id"
        assert read_override(id_, write_override(read)) == read
    assert field in {"id", *write_override(override())}
