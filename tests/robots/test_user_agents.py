"""Spec C13: the crawler that a User-Agent header names, over cases and over a published list of real headers."""

import gzip
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from robots_core.robots.agents import AGENT_LIMIT, BadAgent, first_of, known_agents, read_agent
from robots_core.robots.user_agent import TOKEN, named_in
from tests.robots.cases import CASES, rows
from tools.renew_user_agents import renew

LISTED = [
    json.loads(line) for line in gzip.decompress((CASES / "crawler-user-agents.jsonl.gz").read_bytes()).splitlines()
]
HEADERS = [(row["pattern"], header) for row in LISTED for header in row["headers"]]


@pytest.mark.parametrize("case", rows("agent-cases.jsonl"), ids=lambda case: case["id"])
def test_c13_cases(case: dict[str, str]) -> None:
    agent = read_agent(case["agent"])
    assert agent.token.lower() == case["token"].lower()
    assert agent.unnamed is (case.get("warning") == "agent-unnamed")


def read(header: str) -> str | None:
    try:
        return read_agent(header).token
    except BadAgent:
        return None


def names(pattern: str, header: str) -> Iterator[str]:
    """The tokens of the header in which a match of the pattern begins, and the one that the pattern itself spells."""
    tokens = list(TOKEN.finditer(header))
    for match in re.finditer(pattern, header):
        yield next(token[0] for token in tokens if token.end() > match.start()).lower()


def is_as_listed(token: str | None, pattern: str, header: str) -> bool:
    """Whether the token is where the list finds the crawler, or begins with the name by which the list knows it.

    The latter is for patterns such as `yandex.com/bots`, which stand for YandexBot, YandexImages and others.
    """
    if token is None:
        return False
    found = re.search(pattern, header)
    spelt = None if found is None else TOKEN.search(found[0])
    prefix = spelt is not None and len(spelt[0]) > 2 and token.lower().startswith(spelt[0].lower())
    return prefix or token.lower() in names(pattern, header)


def test_c13_real_headers_are_read_as_listed_or_stand_in_the_table() -> None:
    table = {(row["pattern"], row["agent"]): row["token"] for row in rows("user-agents-read-otherwise.jsonl")}
    found = {(pattern, header): read(header) for pattern, header in HEADERS}
    otherwise = {key: token for key, token in found.items() if not is_as_listed(token, *key)}
    assert otherwise == table
    assert len(otherwise) < 0.08 * len(found)


def test_every_row_of_the_table_has_a_reason() -> None:
    assert all(row["reason"] for row in rows("user-agents-read-otherwise.jsonl"))


def test_the_snapshot_is_renewed_from_a_wheel_of_the_list(tmp_path: Path) -> None:
    wheel = tmp_path / "list.whl"
    listed = [{"pattern": "AcmeBot", "instances": ["AcmeBot/1.0", "é"], "tags": []}, {"pattern": "x", "instances": []}]
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("list/crawler-user-agents.json", json.dumps(listed))
        archive.writestr("list.dist-info/licenses/LICENSE", "MIT")
    assert renew(wheel, tmp_path) == 2
    written = gzip.decompress((tmp_path / "crawler-user-agents.jsonl.gz").read_bytes())
    assert [json.loads(line) for line in written.splitlines()] == [
        {"pattern": "AcmeBot", "headers": ["AcmeBot/1.0", "é"]}
    ]
    assert (tmp_path / "crawler-user-agents.LICENSE").read_text() == "MIT"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other.json", "[]")
    with pytest.raises(ValueError, match=r"crawler-user-agents\.json"):
        renew(wheel, tmp_path)


def test_known_names_are_no_traps_in_real_headers() -> None:
    """A header is read the same without the directory, but for those that name a crawler only for who knows it."""
    known = known_agents()
    differ = {
        with_directory.token
        for _, header in HEADERS
        if (with_directory := named_in(header, known)) != named_in(header, ()) and with_directory is not None
    }
    expected = "Slurp Googlebot-Mobile Storebot-Google Applebot BingPreview Teoma ichiro 008"
    assert differ == set(expected.split())


COMMON = """agent archive archiver bot browser check checker client cloud code crawler data feed fetch fetcher images
index indexer infoseek link links monitor news operator page preview reader research robot scraper search searchbot
server site spider terra test the user validator web webcrawler webspider"""


def test_common_words_are_not_known_as_crawlers() -> None:
    assert known_agents().keys().isdisjoint(COMMON.split())


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("x/1 (Googlebot; Googlebot-News)", "x"),
        ("Mozilla/5.0 (compatible; Googlebot Googlebot-News/2.1)", "Googlebot-News"),
        ("Mozilla/5.0 (compatible; Googlebot-News of Googlebot)", "Googlebot-News"),
        ("AcmeBot/1.0 (Acme webcrawler; +https://acme.example/bot)", "AcmeBot"),
        ("Mozilla/5.0 (compatible; Acme webcrawler; +https://acme.example/bot)", "Acme"),
        ("AcmeBot/2.0 (+https://acme.example/Googlebot)", "AcmeBot"),
        ("AcmeBot (compatible with Googlebot)", "AcmeBot"),
        ("AcmeBot (compatible; Googlebot/2.1)", "Googlebot"),
        ("AcmeBot (compatible; OtherBot/2.1)", "AcmeBot"),
        ("Mozilla/5.0 (compatible; AcmeBot/1.0 for Scrapy/2; +https://acme.example)", "AcmeBot"),
        ("Mozilla/5.0 compatible: AcmeBot/1.0", "AcmeBot"),
        ("Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko AcmeBot/1.0", "AcmeBot"),
        ("Mozilla/5.0 (compatible; 008/0.83; http://www.80legs.com/webcrawler.html)", "008"),
        ("Mozilla/5.0 (X11; Storebot-Google/1.0) Chrome/79", "Storebot-Google"),
        ("Mozilla/5.0 (Googlebot) Gecko (AcmeBot/1.0; +https://acme.example)", "AcmeBot"),
        ("FTP://a.example/ AcmeBot", "AcmeBot"),
        ("AcmeBot/1.0http://a.example/x/y", "AcmeBot"),
        ("1.0 AcmeBot", "AcmeBot"),
        ("curl/8.0 AcmeBot/1.0", "AcmeBot"),
        ("curl/8.0", "curl"),
        ("AcmeBot/1.0 ((((unclosed", "AcmeBot"),
        ("AcmeBot/1.0 ))) x", "AcmeBot"),
        ("(AcmeBot/1.0; +https://acme.example)", "AcmeBot"),
    ],
)
def test_c13_the_part_that_names_the_crawler_is_read(header: str, token: str) -> None:
    agent = read_agent(header)
    assert agent.token.lower() == token.lower()
    assert not agent.unnamed


@pytest.mark.parametrize(
    "header", ["+https://example.com/bot", "bot@example.com", "(AcmeBot)", "(" * 2000, ")", ";", "Ω/1.0", "@/@"]
)
def test_c13_a_header_without_a_product_is_refused(header: str) -> None:
    with pytest.raises(BadAgent, match="product token"):
        read_agent(header)


def test_a_guess_is_marked_also_among_several_agents() -> None:
    browser = read_agent("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/130.0")
    assert (browser.token, browser.unnamed) == ("Mozilla", True)
    assert not read_agent("Mozilla").unnamed
    assert first_of([read_agent("AcmeBot"), browser]).unnamed
    assert not first_of([read_agent("AcmeBot"), read_agent("b")]).unnamed


HOSTILE = ["(", ")", "()", ";", "(;", "(a", "(a;", "a;", "a ", "compatible;", "(compatible;", "compatible ", "like "]
HOSTILE += ["(like ", "@", "a@", "://", "a://", "+", "+(", "www.", "mailto:", "x/", "-", ",", "\t", "é", "Googlebot;"]


@pytest.mark.parametrize("pump", HOSTILE)
def test_reading_is_linear_in_the_header(pump: str) -> None:
    """Twice the text takes at most a little over twice the calls; a quadratic reader takes four times as many."""
    half, whole = (calls(pump * (size // len(pump))) for size in (AGENT_LIMIT // 2, AGENT_LIMIT))
    assert whole <= 2.2 * half + 50
    assert whole < 100 * AGENT_LIMIT


def calls(header: str) -> int:
    """The calls of functions, built-in ones included, that reading takes."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(profile)
    try:
        named_in(header, known_agents())
    finally:
        sys.setprofile(None)
    return count
