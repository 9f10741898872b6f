"""`explain=true` on the routes that decide."""

import pytest

from tests.api.service import running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: *\nDisallow: /a\nAllow: /a/b%7E\nDisallow: /*/\nRequest-rate: 1/5s 1800-1900\n"


async def test_explained_decision_lists_the_matching_rules(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        assert (await service.allowed(f"{origin.url}/a/b~"))["explanation"].keys() == {"summary"}
        explanation = (await service.allowed(f"{origin.url}/a/b~", explain="true"))["explanation"]
    assert (explanation["path"], explanation["tokens"]) == ("/a/b~", ["examplebot"])
    assert explanation["group"] == "no group names examplebot, so the one for * applies (line 1)"
    assert explanation["matched"] == 3
    assert explanation["rules"] == [
        {"directive": "allow", "pattern": "/a/b%7E", "line": 3, "length": 5},
        {"directive": "disallow", "pattern": "/*/", "line": 4, "length": 3},
        {"directive": "disallow", "pattern": "/a", "line": 2, "length": 2},
    ]
    day = [(span["start"], span["end"], span["rate"] and span["rate"]["interval"]) for span in explanation["schedule"]]
    assert day == [("00:00", "18:00", None), ("18:00", "19:00", 5.0), ("19:00", "24:00", None)]


async def test_without_a_file_the_explanation_is_a_summary(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url) as service:
        explanation = (await service.allowed(f"{origin.url}/", explain="true"))["explanation"]
    assert explanation.keys() == {"summary"}
    assert "answers 404" in explanation["summary"]


async def test_explained_test_shows_the_first_rules_and_counts_all(store_url: str) -> None:
    robots = "User-agent: *\n" + "".join(f"Disallow: /{'a' * number}\n" for number in range(300))
    body = {"robots": robots, "urls": ["http://h/" + "a" * 300], "agents": ["a"], "explain": True}
    async with running(store_url) as service:
        answer = (await service.client.post("/v1/test", json=body)).json()
    [row] = answer["rows"]
    assert (row["explanation"]["matched"], len(row["explanation"]["rules"])) == (300, 100)
    assert row["explanation"]["rules"][0]["line"] == row["rule"]["line"] == 301


async def test_extensions_are_reported(store_url: str) -> None:
    robots = "Host: h.example\nUser-agent: *\nNoindex: /x\nClean-param: ref /y\nDisallow: /z\n"
    body = {"robots": robots, "urls": ["http://h/x"], "agents": ["a"]}
    async with running(store_url) as service:
        answer = (await service.client.post("/v1/test", json=body)).json()
    assert answer["extensions"] == [
        {"key": "host", "value": "h.example", "line": 1},
        {"key": "noindex", "value": "/x", "line": 3},
        {"key": "clean-param", "value": "ref /y", "line": 4},
    ]
    assert answer["rows"][0]["allowed"] is True


async def test_usage_is_reported_beside_the_verdict(store_url: str) -> None:
    robots = "User-agent: *\nContent-Usage: train-ai=n\nContent-Signal: search=yes\nDisallow: /z\n"
    body = {"robots": robots, "urls": ["http://h/x", "http://h/z"], "agents": ["a"], "explain": True}
    async with running(store_url) as service:
        answer = (await service.client.post("/v1/test", json=body)).json()
    signals = {"search": "yes"}
    assert [row["usage"] for row in answer["rows"]] == [
        {
            "content_usage": {"train-ai": "n"},
            "content_signal": signals,
            "more": 0,
            "ai_training": None,
            "lines": {"content_usage": {"train-ai": 2}, "content_signal": {"search": 3}},
        },
        {
            "content_usage": {},
            "content_signal": signals,
            "more": 0,
            "ai_training": None,
            "lines": {"content_usage": {}, "content_signal": {"search": 3}},
        },
    ]
