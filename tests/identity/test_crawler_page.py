"""The page about a crawler: its lines do what it says, its values are text, and it is under one host alone."""

import re
from collections import Counter
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

import robots_core
from app.api.routes.pages import CONTENT_SECURITY
from app.auth.keys import new_key
from app.identity.crawler_page import SLOWED_TO, crawler_page, mail_link, slowing_lines, stopping_lines
from app.identity.well_known import CARD_PATH, CRAWLER_PAGES
from app.main.agents_file import load
from robots_core.agents.directory import AgentCategory, KnownAgent
from robots_core.robots.agents import agent_of
from robots_core.robots.dialects import DIALECTS
from tests.api.service import running, slug
from tests.identity.agents import HOST, write_agents, write_key

ORIGIN = f"https://{HOST}"
PAGE = "https://www.example.org/a"


class Read(HTMLParser):
    """The elements of a page, the addresses that they name, and the text of each."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, Mapping[str, str | None]]] = []
        self.text = ""
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def crawler(token: str = "AcmeBot", **row: Any) -> KnownAgent:
    facts = {name: row.pop(name) for name in ("operator", "category", "documentation") if name in row}
    return KnownAgent(agent=agent_of(token, row), **facts)


@pytest.mark.parametrize(("dialect", "token"), list(product(DIALECTS, ["AcmeBot", "Acme2-Bot", "acme_bot"])))
@pytest.mark.parametrize("star", [True, False])
def test_the_lines_do_what_the_page_says(dialect: str, token: str, star: bool) -> None:
    known = crawler(token, dialect=dialect, star=star)
    stop = stopping_lines(known.agent)
    if stop is None:
        assert (dialect, token, star) == ("google", "Acme2-Bot", False)
        for group in (f"User-agent: {token}\nDisallow: /", "User-agent: *\nDisallow: /"):
            assert robots_core.read(group.encode()).decide(PAGE, known.agent).allowed
        assert "No line of a robots.txt is for it" in Read(crawler_page(known, ORIGIN, "AcmeBot/1.0", None)).text
        return
    file = robots_core.read(stop.encode())
    assert not file.decide(PAGE, known.agent).allowed
    assert file.decide(PAGE, "OtherBot").allowed == (token in stop)
    for cap in (None, 4.0, 2.5, 60.0):
        lines = slowing_lines(known.agent, cap)
        page = Read(crawler_page(known, ORIGIN, "AcmeBot/1.0", None, cap)).text
        rates = DIALECTS[dialect].rates
        assert (lines is None) == (not rates.uses_crawl_delay and not rates.uses_request_rate)
        if lines is None:
            assert "It reads no rates in robots.txt." in page
            continue
        assert lines in page
        slow = robots_core.read(lines.encode()).rate(known.agent)
        assert slow is not None
        expected = min(SLOWED_TO, cap or SLOWED_TO)
        assert slow.interval == (expected if rates.uses_crawl_delay else int(expected))


@pytest.mark.parametrize("category", AgentCategory)
def test_a_page_says_why_unless_the_file_does_not(category: AgentCategory) -> None:
    page = Read(crawler_page(crawler(category=category), ORIGIN, "AcmeBot/1.0", None)).text
    said = re.search(r"AcmeBot fetches pages( .+)?\. Its requests", page)
    assert said is not None
    assert (said[1] is None) == (category is AgentCategory.OTHER)


def test_what_an_operator_admits_is_said() -> None:
    page = Read(crawler_page(crawler(exempt=True), ORIGIN, "AcmeBot/1.0", None)).text
    assert "it does not, or not always, ask robots.txt" in page
    assert "names no address" in page


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "</pre></main><h1>x",
    "&lt;b&gt; &amp; & %s {0} ${x}",
)


@pytest.mark.parametrize("value", HOSTILE)
def test_values_are_text_and_never_markup(value: str) -> None:
    plain = Read(crawler_page(crawler(operator="x", documentation="https://x/"), ORIGIN, "x", "x@x"))
    contact, documentation = re.sub(r"\s", "", value) + "@x", "https://x/" + re.sub(r"\s", "", value)
    known = crawler(operator=value, documentation=documentation)
    read = Read(crawler_page(known, ORIGIN, value, contact))
    assert [tag for tag, _ in read.elements] == [tag for tag, _ in plain.elements]
    assert Counter(name for _, names in read.elements for name in names) == Counter(
        name for _, names in plain.elements for name in names
    )
    assert [names["href"] for tag, names in read.elements if tag == "a"][1:] == [mail_link(contact), documentation]
    for shown in (value, contact, documentation):
        assert shown in read.text


def test_a_mail_address_adds_no_field_to_its_link() -> None:
    assert mail_link("a?cc=b&body=c@example.com") == "mailto:a%3Fcc%3Db%26body%3Dc@example.com"


@pytest.mark.parametrize("keyed", [False, True], ids=["loopback", "API keys"])
async def test_site_owners_get_the_page_under_its_host(
    store_url: str, store_client: Redis, tmp_path: Path, keyed: bool
) -> None:
    for name in ("a.pem", "b.pem"):
        write_key(tmp_path / name)
    more = """[agents.Elsewhere]
profile = "elsewhere"
[profiles.elsewhere]
user_agent = "Elsewhere/1.0"
signature_agent = "https://elsewhere.example.com"
private_key = "b.pem"
[agents.Unsigned]
[agents.Acme-Preference]
profile = "acme"
policy = true
[agents.AcmeImages]
profile = "acme"
"""
    settings: dict[str, Any] = {"agents_file": write_agents(tmp_path / "agents.toml", "a.pem", [], more)}
    if keyed:
        settings["api_keys_file"] = tmp_path / "keys.toml"
        settings["api_keys_file"].write_text(new_key("crawler")[1])
        settings["api_keys_file"].chmod(0o600)
    async with running(store_url, **settings) as service:

        async def get(path: str, host: str = HOST) -> httpx.Response:
            return await service.client.get(path, headers={"Host": host, "Authorization": ""})

        card = (await get(CARD_PATH)).json()
        assert card["client_uri"] == f"{ORIGIN}{CRAWLER_PAGES}AcmeBot"
        page = await get(card["client_uri"].removeprefix(ORIGIN))
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"] == CONTENT_SECURITY
        assert "bot@example.com" in page.text
        assert (await get("/bot/acmebot")).content == page.content
        assert (await get("/bot/AcmeImages")).status_code == 200
        assert (await get("/bot/Elsewhere", "elsewhere.example.com")).status_code == 200
        for path, host in (
            ("/bot/Elsewhere", HOST),
            ("/bot/Unsigned", HOST),
            ("/bot/Acme-Preference", HOST),
            ("/bot/Googlebot", HOST),
            ("/bot/", HOST),
            ("/bot/AcmeBot/", HOST),
            ("/bot/AcmeBot", "elsewhere.example.com"),
            ("/bot/AcmeBot", "localhost"),
        ):
            other = await get(path, host)
            assert (other.status_code, slug(other)) == (404, "not-found"), (path, host)


def test_a_card_without_a_crawler_has_no_page(tmp_path: Path) -> None:
    write_key(tmp_path / "a.pem")
    file = write_agents(tmp_path / "agents.toml", "a.pem", [])
    file.write_text(file.read_text().replace('profile = "acme"\n', ""))
    identity = load(file).identities[HOST]
    assert b"client_uri" not in identity.card
    assert identity.pages == {}
