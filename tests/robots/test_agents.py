"""Spec C: agents, their tokens, and the groups that bind them."""

import pytest

from robots_core.robots.agents import BadAgent, first_of, known_agents, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("FooBot", "FooBot"),
        ("googlebot", "Googlebot"),
        ("MJ12bot", "MJ12bot"),
        ("FooBot/2.1", "FooBot"),
        ("FooBot/2.1 (+http://foo.example/bot)", "FooBot"),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"),
        ("Googlebot-Image/1.0", "Googlebot-Image"),
        ("Mozilla/5.0 (compatible; FooBot/1.0; +http://foo.example)", "FooBot"),
        ("Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/99.0 FooBot/1", "FooBot"),
        ("Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com)", "GPTBot"),
        ("SeznamBot/4.0 (+http://napoveda.seznam.cz/seznambot-intro/)", "SeznamBot"),
        ("Foo Bar", "Foo"),
        ("*", "*"),
    ],
)
def test_c13_a_header_is_reduced_to_its_token(text: str, token: str) -> None:
    assert read_agent(text).token == token


@pytest.mark.parametrize(
    "text",
    [
        *("Googlebot, bingbot", "Googlebot,bingbot/2.0", "googlebot; BINGBOT", "GPTBot|ClaudeBot", "GPTBot\nClaudeBot"),
        *("Googlebot bingbot", "GPTBot & ClaudeBot", "GPTBot and ClaudeBot", "FooBot, GPTBot, ClaudeBot"),
    ],
)
def test_c13_a_list_of_known_crawlers_is_an_error(text: str) -> None:
    with pytest.raises(BadAgent, match="names several crawlers; give each as an agent of its own"):
        read_agent(text)


@pytest.mark.parametrize(
    "text", ["FooBot, BarBot", "FooBot/1.0;BarBot/2.0", "FooBot | BarBot,", "FooBot, GPTBot, BarBot"]
)
def test_c13_other_names_of_a_list_are_looked_up_in_order(text: str) -> None:
    robots = RobotsTxt(b"User-agent: BarBot\nDisallow: /\n")
    assert read_agent(text).names[0] == "foobot"
    assert robots.judge(DIALECTS["rfc9309"], read_agent(text), "/").permission == "disallow"


def test_c13_a_name_of_a_baiduspider_goes_by_its_group() -> None:
    robots = RobotsTxt(b"User-agent: Baiduspider\nDisallow: /\n")
    for product in ("ads", "cpro", "favo", "image", "news", "video"):
        assert robots.judge(DIALECTS["rfc9309"], read_agent(f"Baiduspider-{product}"), "/").permission == "disallow"


@pytest.mark.parametrize("text", ["", "   ", "/1.0", "(compatible)", "ěščř", "\ud800", "x" * 3000])
def test_c13_text_without_a_token_is_named_in_the_error(text: str) -> None:
    with pytest.raises(BadAgent, match="agent"):
        read_agent(text)


def test_q6_dialect_and_recheck_come_with_the_crawler() -> None:
    assert read_agent("Googlebot").dialect == "google"
    assert (read_agent("SeznamBot").dialect, read_agent("SeznamBot").recheck) == ("seznam", "seznam")
    assert (read_agent("FooBot").dialect, read_agent("FooBot").recheck) == ("rfc9309", "rfc9309")


def test_the_table_names_only_dialects_that_exist() -> None:
    assert {agent.dialect for agent in known_agents().values()} <= DIALECTS.keys()
    assert known_agents()["applebot"].chain == ("applebot", "googlebot")


def token_found(body: bytes, agent: str, dialect: str = "rfc9309", *more: str) -> str | None:
    asking = first_of([read_agent(name) for name in (agent, *more)])
    selection = RobotsTxt(body).reading(DIALECTS[dialect]).select(asking)
    return None if selection is None else selection.token


@pytest.mark.parametrize(
    ("lines", "agent", "dialect", "token"),
    [
        ("360Spider", "360Spider", "rfc9309", "360spider"),
        ("360Spider", "360Spider", "google", None),
        ("MJ12bot", "MJ12bot", "rfc9309", "mj12bot"),
        ("MJ12bot", "MJ", "google", "mj"),
        ("MJ12bot", "MJ", "rfc9309", None),
        ("Googlebot/2.1", "Googlebot", "google", "googlebot"),
        ("googlebot*", "Googlebot", "google", "googlebot"),
        ("* for all", "FooBot", "google", "*"),
        ("*bot", "FooBot", "google", None),
        ("*", "*", "rfc9309", "*"),
        ("", "FooBot", "rfc9309", None),
    ],
)
def test_c2_a_value_is_reduced_to_its_token(lines: str, agent: str, dialect: str, token: str | None) -> None:
    assert token_found(f"User-agent: {lines}\nDisallow: /".encode(), agent, dialect) == token


def test_c7_some_crawlers_are_bound_only_by_their_own_name() -> None:
    assert token_found(b"User-agent: *\nDisallow: /", "AdsBot-Google") is None
    assert token_found(b"User-agent: AdsBot-Google\nDisallow: /", "AdsBot-Google-Mobile") == "adsbot-google"


def test_several_agents_are_looked_up_in_order() -> None:
    body = b"User-agent: b\nDisallow: /1\n\nUser-agent: *\nDisallow: /2"
    assert token_found(body, "a", "rfc9309", "b") == "b"
    assert token_found(body, "a", "rfc9309", "c") == "*"
    assert token_found(body, "a", "draft1996", "b") == "b"


def test_several_agents_obey_the_star_if_one_of_them_does() -> None:
    body = b"User-agent: *\nDisallow: /"
    assert token_found(body, "AdsBot-Google", "rfc9309", "FooBot") == "*"
    assert token_found(body, "FooBot", "rfc9309", "AdsBot-Google") == "*"
    assert token_found(body, "AdsBot-Google", "rfc9309", "APIs-Google") is None


def test_e2_the_draft_has_no_chains() -> None:
    assert token_found(b"User-agent: googlebot\nDisallow: /", "Applebot", "draft1996") is None
    assert token_found(b"User-agent: googlebot\nDisallow: /", "Applebot", "rfc9309") == "googlebot"
