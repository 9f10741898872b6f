"""No robots.txt makes an ordinary answer large: the parts left out are counted."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api.service import Service, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

CONTROL = "\x01" * 16_000
AGENTS = "".join(f"user-agent: bot{number}\n" for number in range(20_000)) + "disallow: /x\n"
FILES: Mapping[str, str] = {
    "agents": AGENTS,
    "escaped agents": "user-agent: a\n" + f"user-agent: {CONTROL}\n" * 30 + "disallow: /x\n",
    "sitemaps": "".join(f"sitemap: http://h/{number}.xml\n" for number in range(20_000)),
    "escaped sitemaps": f"sitemap: http://h/{CONTROL}\n" * 30,
    "usage": "user-agent: *\n" + "".join(f"content-usage: a{number}=y\n" for number in range(20_000)),
    "signals": "user-agent: *\n" + "".join(f"content-signal: a{number}=yes\n" for number in range(1_500)),
    "rules": "user-agent: *\n" + f"disallow: /*{CONTROL[:-9]}*\n" * 30,
}


async def answer_and_size(service: Service, url: str, agent: str, **parameters: str) -> tuple[dict[str, Any], int]:
    response = await service.client.get("/v1/allowed", params={"url": url, "agent": agent, **parameters})
    assert response.status_code == 200
    content: dict[str, Any] = response.json()
    return content, len(response.content)


@pytest.mark.parametrize("name", FILES)
async def test_an_answer_has_a_bounded_size(store_url: str, name: str) -> None:
    async with serve(text(200, FILES[name])) as origin, running(store_url) as service:
        _, size = await answer_and_size(service, f"{origin.url}/p", "a" if "escaped" in name else "bot7")
        _, explained = await answer_and_size(service, f"{origin.url}/{'p' * 100}", "bot7", explain="true")
    assert size < 64 * 1024
    assert explained < 192 * 1024


async def test_omitted_agents_and_sitemaps_are_counted(store_url: str) -> None:
    robots = AGENTS + FILES["sitemaps"][:-1] + "\nuser-agent: other\n" + FILES["usage"].partition("\n")[2][:150_000]
    async with serve(text(200, robots[:511_000])) as origin, running(store_url) as service:
        content, _ = await answer_and_size(service, f"{origin.url}/p", "bot7")
    group = content["group"]
    assert group["agents"][:2] == ["bot0", "bot1"]
    assert 100 < len(group["agents"]) < 1000
    assert len(group["agents"]) + group["more_agents"] == 20_000
    assert content["sitemaps"][0] == "http://h/0.xml"
    assert 500 < len(content["sitemaps"]) < 5000
    assert content["more_sitemaps"] > 1000


async def test_omitted_usage_is_counted(store_url: str) -> None:
    async with serve(text(200, FILES["signals"])) as origin, running(store_url) as service:
        content, _ = await answer_and_size(service, f"{origin.url}/p", "bot7")
    usage = content["usage"]
    assert usage["content_signal"]["a0"] == "yes"
    assert len(usage["content_signal"]) + usage["more"] == 1_500


async def test_long_matching_rules_are_counted_and_the_first_is_shown(store_url: str) -> None:
    quotes = '"' * 4_000
    robots = "user-agent: *\n" + f"disallow: /*{quotes}\n" * 90
    async with serve(text(200, robots)) as origin, running(store_url) as service:
        content, _ = await answer_and_size(service, f"{origin.url}/{quotes}", "a", explain="true")
    assert content["verdict"] == "disallow"
    assert content["explanation"]["matched"] == 90
    rules = content["explanation"]["rules"]
    assert [rule["line"] for rule in rules] == list(range(2, 2 + len(rules)))
    assert 50 < len(rules) < 90  # 64 KiB of patterns, each of which is cut
    assert {rule["pattern"] for rule in rules} == {"/*" + '"' * 498 + "…"}
    assert content["rule"]["pattern"] == rules[0]["pattern"]
    assert content["rule"]["text"] == "disallow: /*" + '"' * 488 + "…"
