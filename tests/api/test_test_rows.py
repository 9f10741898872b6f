"""The answer of `POST /v1/test` grows with the question and the file, not with their product."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.agents.directory import builtin_directory
from app.api.long_work import Allowance
from app.api.problems import Problem
from app.api.routes.test_file import PastedFile, TestIn, answer_texts
from app.cache.recheck import MODELS, Model
from tests.api.service import running

NOW = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)
KNOWN = builtin_directory()


def models(_host: str, name: str) -> Model:
    return MODELS[name]


def answer(allowance: Allowance | None = None, **members: Any) -> tuple[dict[str, Any], int]:
    """The answer, and its size in bytes."""
    trial = TestIn(**members)
    pieces = answer_texts(
        trial,
        PastedFile.read(trial.body()),
        builtin_directory(),
        NOW,
        models,
        allowance or Allowance(),
        forbidden=False,
    )
    text = "".join(pieces)
    content: dict[str, Any] = json.loads(text)
    return content, len(text.encode())


def urls(count: int) -> list[str]:
    return [f"http://h/{number}" for number in range(count)]


ROBOTS = """User-agent: A
User-agent: B
Disallow: /1
Crawl-delay: 2
Content-Usage: ai=n

User-agent: *
Disallow: /
"""


def test_rows_refer_to_shared_tables() -> None:
    content, _ = answer(robots=ROBOTS, urls=urls(3), agents=["A", "B", "C"])
    assert [row["rule"] for row in content["rows"]] == [None, None, 0, 1, 1, 0, None, None, 0]
    assert [(rule["line"], rule["text"]) for rule in content["rules"]] == [(8, "Disallow: /"), (3, "Disallow: /1")]
    assert [row["group"] for row in content["rows"]] == [0, 1, 2] * 3
    assert [(group["token"], group["agents"], group["line"]) for group in content["groups"]] == [
        ("a", ["A", "B"], 1),
        ("b", ["A", "B"], 1),
        ("*", ["*"], 7),
    ]
    assert [row["reader"] for row in content["rows"]] == [0, 1, 2] * 3
    assert [(it["agent"], it["rate"] and it["rate"]["interval"]) for it in content["readers"]] == [
        ("A", 2.0),
        ("B", 2.0),
        ("C", None),
    ]
    assert [row["usage"] for row in content["rows"]] == [0, 0, None, None, None, None, 0, 0, None]
    assert [usage["content_usage"] for usage in content["usages"]] == [{"ai": "n"}]
    assert content["left_out"] == 0


def test_row_explanation_refers_to_rules_and_reader() -> None:
    content, _ = answer(
        robots="User-agent: *\nDisallow: /\nAllow: /1\nCrawl-delay: 2\n", urls=urls(2), agents=["A"], explain=True
    )
    first, second = (row["explanation"] for row in content["rows"])
    assert [content["rules"][it["rule"]]["line"] for it in first["rules"]] == [2]
    assert [content["rules"][it["rule"]]["line"] for it in second["rules"]] == [3, 2]
    assert (second["path"], second["matched"]) == ("/1", 2)
    [reader] = content["readers"]
    assert reader["tokens"] == ["a"]
    assert "the one for * applies" in reader["found"]
    assert [span["rate"]["interval"] for span in reader["schedule"]] == [2.0]


LONG = "\x01" * 16_000
HOSTILE = {
    "agents of a group": "".join(f"user-agent:{number:04x}\n" for number in range(31_900)) + "disallow:/x\n",
    "an agent that is escaped": f"user-agent:0000\nuser-agent:{LONG}\ndisallow:/x\n",
    "a long rule": f"user-agent:*\ndisallow:/*{LONG}\nallow:/{'*' * 16_000}\n",
    "usages": "user-agent:*\n" + "".join(f"content-usage:a{number}=y\n" for number in range(20_000)) + "disallow:/x\n",
    "signals": "user-agent:*\n"
    + "".join(f"content-signal:a{number}=y\n" for number in range(20_000))
    + "disallow:/x\n",
    "rates": "user-agent:*\n"
    + "".join(f"request-rate:1/{minute + 2} {minute // 60:02}{minute % 60:02}-2400\n" for minute in range(1440)),
    "sitemaps": "".join(f"sitemap:http://h/{number}\n" for number in range(20_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("explain", [False, True])
def test_answer_grows_by_a_bounded_size_per_row(name: str, explain: bool) -> None:
    """The bytes per row do not depend on the file; without rows, the answer contains the file at most once."""
    members: dict[str, Any] = {"robots": HOSTILE[name], "agents": ["0000"], "explain": explain}
    (few, small), (many, large) = (answer(urls=urls(count), **members) for count in (10, 110))
    assert (few["left_out"], many["left_out"]) == (0, 0)
    assert (large - small) / 100 < 1000


def test_a_truncated_large_answer_counts_the_rows_left_out() -> None:
    pages = [f"http://h/{'a' * 10_000}{number}" for number in range(100)]
    content, size = answer(Allowance(room=200_000), robots="", urls=pages, agents=["A", "B"])
    assert len(content["rows"]) == 20
    assert content["left_out"] == 180
    assert size < 250_000


def test_a_truncated_slow_answer_counts_the_rows_left_out() -> None:
    allowance = Allowance(seconds=1.0)
    trial = TestIn(robots=ROBOTS, urls=urls(100), agents=["A"])
    text = ""
    for piece in answer_texts(trial, PastedFile.read(trial.body()), KNOWN, NOW, models, allowance, forbidden=False):
        text += piece
        if '"rows":[{' in text:
            allowance.seconds -= 0.25  # the time of a row
    content = json.loads(text)
    assert len(content["rows"]) == 4
    assert content["left_out"] == 96


def test_invalid_test_is_refused_before_the_first_piece() -> None:
    trial = TestIn(robots="", urls=[*urls(3), "nonsense"], agents=["A"])
    pieces = answer_texts(
        trial,
        PastedFile.read(trial.body()),
        KNOWN,
        NOW,
        models,
        Allowance(),
        forbidden=False,
    )
    with pytest.raises(Problem):
        assert "".join(pieces) == ""


@pytest.mark.usefixtures("store_client")
async def test_hostile_file_and_2000_pages_make_a_small_answer(store_url: str) -> None:
    body = {"robots": HOSTILE["agents of a group"], "urls": urls(2000), "agents": ["0000"]}
    async with running(store_url) as service:
        response = await service.client.post("/v1/test", json=body)
    assert response.status_code == 200
    assert len(response.json()["rows"]) == 2000
    assert len(response.content) < 1_000_000  # it was 447 MB
