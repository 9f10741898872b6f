"""Lines that look like a fault but are not."""

import pytest

from robots_core.lint.linter import lint
from robots_core.robots.robots_txt import RobotsTxt

FINE = [
    "Disallow: /a # a comment",
    "Disallow: /a #b",
    "Disallow: /a#the pages of a",
    "Disallow: /a##",
    "Disallow: #/a",
    "Disallow: /a,b",
    "Disallow: /*?filter[]=",
    "Disallow: /*?price[min]=",
    "Disallow: /{id}/",
    "Disallow: /.*",
    "Disallow: /index.*",
    "Disallow: /(a)",
    "Disallow: /x,*y",
    "Disallow: *.pdf",
    "Disallow: /$",
    "Crawl-delay: 10",
    "Crawl-delay: 0",
    "Request-rate: 1/10s",
    "Content-Signal: search=yes, use=reference",
    "Sitemap: https://h/a b.xml",
    "License: https://h/l m",
]


@pytest.mark.parametrize("line", FINE)
def test_a_line_that_only_looks_like_a_fault_is_not_reported(line: str) -> None:
    assert lint(RobotsTxt(f"User-agent: *\nAllow: /public\n{line}".encode())) == []


@pytest.mark.parametrize(
    "agent", ["*", "* all", "360Spider", "008", "MJ12bot", "Googlebot/2.1", "GetRight/3.3 x", "a_b-c", "Yandex"]
)
def test_c2_a_whole_name_is_not_reported(agent: str) -> None:
    assert lint(RobotsTxt(f"User-agent: {agent}\nDisallow: /x".encode())) == []


def test_c2_truncated_names_are_not_duplicates() -> None:
    found = lint(RobotsTxt(b"User-agent: Offline Explorer\nAllow: /x\n\nUser-agent: Offline Navigator\nAllow: /y"))
    assert [advice.code for advice in found] == ["agent-cut-short", "agent-cut-short"]


def test_an_agent_named_twice_in_one_group_is_not_reported() -> None:
    assert lint(RobotsTxt(b"User-agent: a\nUser-agent: a\nDisallow: /x")) == []


@pytest.mark.parametrize(
    "body",
    [
        b"User-agent: *\nDisallow: /\nAllow: /x",
        b"User-agent: *\nDisallow:",
        b"User-agent: a\nDisallow: /",
        b"User-agent: *\nDisallow: /$",
    ],
)
def test_a_partly_open_site_is_not_reported_as_closed(body: bytes) -> None:
    assert lint(RobotsTxt(body)) == []


@pytest.mark.parametrize("agent", ["bingbot", "MJ12bot", "a"])
def test_f7_a_rate_not_for_seznambot_is_not_reported_as_clamped(agent: str) -> None:
    assert lint(RobotsTxt(f"User-agent: {agent}\nAllow: /\nRequest-rate: 1/60s".encode())) == []


def test_a_delay_for_several_crawlers_names_those_that_ignore_it() -> None:
    body = b"User-agent: Googlebot\nUser-agent: bingbot\nUser-agent: Yandex\nAllow: /\nCrawl-delay: 60"
    ignored, large = lint(RobotsTxt(body))
    assert (ignored.code, large.code) == ("crawl-delay-ignored", "crawl-delay-large")
    assert ignored.message.startswith("Googlebot, Yandex ignore Crawl-delay.")


SIGNAL = "Content-Signal: search=yes"
GROUPS = "User-agent: *\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\n"


@pytest.mark.parametrize(
    "body",
    [
        f"User-agent: b\n{SIGNAL}\nDisallow: /b\n",
        f"{GROUPS}\n{SIGNAL}\nDisallow: /c\n",
        f"{GROUPS}\nUser-agent: *\n{SIGNAL}\n",
        f"User-agent: *\n{SIGNAL}\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\n\nContent-Signal: search=no\n",
        f"User-agent: b\nDisallow: /b\n\nUser-agent: *\nDisallow: /a\n\n{SIGNAL}\n",
        f"User-agent: b\n\n{SIGNAL}\nDisallow: /b\n",
        f"User-agent: a\nDisallow: /a\n\n{SIGNAL}\n\nUser-agent: b\nDisallow: /b\n",
    ],
)
def test_i2_a_signal_of_a_group_is_not_reported(body: str) -> None:
    assert "signal-in-last-group" not in {advice.code for advice in lint(RobotsTxt(body.encode()))}
