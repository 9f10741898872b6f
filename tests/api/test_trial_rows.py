"""The rows of `POST /v1/test`: what each says, that each takes a bounded size, and that one may fail alone."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from math import inf
from typing import Any

import pytest

from app.api.answers.encoding import AnswerEncoder
from app.api.answers.serialize import RULE_SHOWN
from app.api.long_work import SMALL_FILE
from app.api.problems import Problem, unexpected
from app.api.trials import rows
from app.api.trials.reading import EXPLAINED_LIMIT, Conditions, TrialIn, read
from app.api.trials.rows import TEST_ROOM, PastedFile, trial_json
from app.cache.recheck import MODELS, Model
from app.decisions.evaluate import Decision
from app.loop.helper_process import REPLY_LIMIT
from app.loop.helpers import Helpers
from robots_core.agents.directory import builtin_directory
from robots_core.origin import URL_LIMIT
from robots_core.purposes.policy import PurposePolicy
from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.dialects import DIALECTS
from tests.api.service import counted, running
from tests.corpus import real_files

NOW = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)


def models(_host: str, name: str) -> Model:
    return MODELS[name]


CONDITIONS = Conditions(builtin_directory(), NOW, models, forbidden=False)


def answer(
    policy: PurposePolicy | None = None, seconds: float = inf, room: float = inf, **members: Any
) -> tuple[dict[str, Any], int]:
    """The answer, and its size in bytes."""
    test = TrialIn(**members)
    body = test.body()
    trial = read(test, body, CONDITIONS, policy)

    def failed(error: Exception) -> None:
        raise AssertionError from error

    text = rows.answer(trial, PastedFile.read(body or b""), b"{}", failed, seconds=seconds, room=room)
    content: dict[str, Any] = json.loads(text)
    return content, len(text)


def urls(count: int) -> list[str]:
    return [f"http://h/{number}" for number in range(count)]


ROBOTS = """User-agent: A
User-agent: B
Disallow: /1
Crawl-delay: 2
Content-Usage: ai=n

User-agent: *
Disallow: /  # all
"""


def test_a_row_says_what_decided() -> None:
    content, _ = answer(robots=ROBOTS, urls=urls(2), agents=["A", "C"])
    assert content["left_out"] == 0
    assert [(row["url"][-1], row["agent"], row["verdict"]) for row in content["rows"]] == [
        ("0", "A", "allow"),
        ("0", "C", "disallow"),
        ("1", "A", "disallow"),
        ("1", "C", "disallow"),
    ]
    assert [row["rule"] and row["rule"]["line"] for row in content["rows"]] == [None, 8, 3, 8]
    assert content["rows"][1] == {
        "url": "http://h/0",
        "agent": "C",
        "dialect": "rfc9309",
        "verdict": "disallow",
        "allowed": False,
        "reason": "rule",
        "partial": False,
        "explanation": {"summary": "Line 8 (Disallow: /) in the group for * disallows this URL."},
        "rule": {"directive": "disallow", "pattern": "/", "line": 8, "text": "Disallow: /"},
        "group": {"token": "*", "line": 7},
        "rate": None,
        "next_rate": None,
        "retry_at": None,
    }
    assert [row["rate"] and row["rate"]["interval"] for row in content["rows"]] == [2.0, None, 2.0, None]


def test_an_explained_row_has_the_details_of_its_group() -> None:
    robots = "User-agent: *\nDisallow: /\nAllow: /1\nCrawl-delay: 2\nVisit-time: 0600-1845\nContent-Usage: ai=n\n"
    content, _ = answer(robots=robots, urls=urls(2), agents=["A"], explain=True)
    row, second = content["rows"]
    assert [it["line"] for it in row["explanation"]["rules"]] == [2]
    explanation = second["explanation"]
    assert [(it["line"], it["pattern"], it["length"]) for it in explanation["rules"]] == [(3, "/1", 2), (2, "/", 1)]
    assert (explanation["path"], explanation["matched"], explanation["tokens"]) == ("/1", 2, ["a"])
    assert "the one for * applies" in explanation["group"]
    assert [span["rate"]["interval"] for span in explanation["schedule"]] == [2.0]
    assert second["group"] == {"token": "*", "agents": ["*"], "more_agents": 0, "line": 1}
    assert (second["crawl_delay"], second["visit"]["now"]) == (2.0, True)
    assert second["usage"]["content_usage"] == {"ai": "n"}


def test_rows_say_the_same_whatever_other_rows_there_are() -> None:
    """Rows share what they have in common, which must be all that it depends on."""
    purposes = ["search", "ai-train"]
    agents = ["Googlebot", "bingbot", "SeznamBot", "ExampleBot", "GPTBot", "Mozilla/5.0"]
    for body in [ROBOTS.encode(), *list(real_files().values())[:200:20]]:
        text = body.decode("latin-1")
        members: dict[str, Any] = {"robots": text, "purpose": purposes, "dialects": list(DIALECTS)}
        pages = ["http://h/", "http://h/1", "http://h/robots.txt", "http://h/search?q=a", "http://h/wp-admin/x"]
        many, _ = answer(**members, urls=pages, agents=agents)
        alone = [answer(**members, urls=[page], agents=[agent])[0]["rows"] for page in pages for agent in agents]
        assert many["rows"] == [row for rows in alone for row in rows]


def test_explain_is_for_few_rows() -> None:
    content, _ = answer(robots=ROBOTS, urls=urls(EXPLAINED_LIMIT), agents=["A"], explain=True)
    assert all("rules" in row["explanation"] for row in content["rows"])
    with pytest.raises(Problem, match="with explain, send at most 100") as caught:
        answer(robots=ROBOTS, urls=urls(EXPLAINED_LIMIT // 2 + 1), agents=["A", "B"], explain=True)
    assert (caught.value.status_code, caught.value.slug) == (422, "too-many-rows")


@pytest.mark.usefixtures("store_client")
async def test_a_row_that_fails_fails_alone(
    store_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encode = AnswerEncoder.encode

    def failing(encoder: AnswerEncoder, decision: Decision, fields: Sequence[str]) -> bytes:
        if decision.question.target.path == "/1":
            raise ZeroDivisionError("a bug")
        return encode(encoder, decision, fields)

    monkeypatch.setattr(AnswerEncoder, "encode", failing)
    headers = {"X-Request-Id": "the-id"}
    async with running(store_url) as service:
        body = {"robots": ROBOTS, "urls": urls(3), "agents": ["A"]}
        response = await service.client.post("/v1/test", json=body, headers=headers)
    content = response.json()
    first, failed, last = content["rows"]
    assert (first["verdict"], last["verdict"], content["left_out"]) == ("allow", "allow", 0)
    assert failed == {
        "url": "http://h/1",
        "agent": "A",
        "dialect": "rfc9309",
        "problem": json.loads(unexpected(response.headers["x-request-id"]).text),
    }
    assert "ZeroDivisionError: a bug" in caplog.text


@pytest.mark.parametrize("outcome", [None, {"status": 503, "for": "3d"}])
@pytest.mark.parametrize("explain", [False, True])
async def test_a_helper_gives_the_same_answer(outcome: dict[str, Any] | None, explain: bool) -> None:
    members = {"robots": ROBOTS, "urls": urls(3), "agents": ["A", "Googlebot"], "explain": explain, "outcome": outcome}
    test = TrialIn.model_validate(members)
    trial = read(test, test.body(), CONDITIONS, PurposePolicy(("search",), enforce=True))
    helpers = Helpers()
    there = await helpers.run("a", trial_json, trial, test.body(), b"{}")
    await helpers.aclose()
    assert there == trial_json(trial, test.body() or b"", b"{}")
    assert there.startswith(b'""\n{"rows":[{')


@pytest.mark.usefixtures("store_client")
async def test_many_rows_and_large_files_are_decided_by_a_helper(store_url: str) -> None:
    async with running(store_url) as service:
        for count, comment, explain in (
            (1, 0, True),
            (1, SMALL_FILE, False),
            (100, 0, False),
            (100, 0, True),
            (200, 0, False),
        ):
            body = {"robots": ROBOTS + "#" * comment, "urls": urls(count), "agents": ["A"], "explain": explain}
            content = (await service.client.post("/v1/test", json=body)).json()
            assert [row["verdict"] for row in content["rows"][:2]] == ["allow", "disallow"][:count]
            assert len(content["rows"]) == count
        assert await counted(service, "robots_helper_calls_total", outcome="done") == 3


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
    """The bytes per row have a bound; without rows, the answer contains the file at most once."""
    members: dict[str, Any] = {"robots": HOSTILE[name], "agents": ["0000"], "explain": explain}
    (few, small), (many, large) = (answer(urls=urls(count), **members) for count in (5, 25))
    assert (large - small) / (len(many["rows"]) - len(few["rows"])) < (400_000 if explain else 20 * RULE_SHOWN)


def test_a_truncated_large_answer_counts_the_rows_left_out() -> None:
    pages = [f"http://h/{'a' * 10_000}{number}" for number in range(100)]
    content, size = answer(room=200_000, robots="", urls=pages, agents=["A", "B"])
    assert len(content["rows"]) == 20
    assert content["left_out"] == 180
    assert size < 250_000


def test_a_truncated_slow_answer_counts_the_rows_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = count(0.0, 0.25)
    monkeypatch.setattr(time, "process_time", lambda: next(instants))
    content, _ = answer(seconds=1.0, robots=ROBOTS, urls=urls(100), agents=["A"])
    assert len(content["rows"]) == 4
    assert content["left_out"] == 96


def test_the_largest_answer_fits_into_that_of_a_helper() -> None:
    # Lines that take most room beside the rows, and the longest row.
    robots = "a:\n" * (BODY_LIMIT // 3)
    pages = [f"http://h/{'a' * (URL_LIMIT - 20)}{number}" for number in range(10)]
    whole, size = answer(room=1, robots=robots, urls=pages, agents=["A"])
    assert len(whole["rows"]) == 1
    assert size < TEST_ROOM < REPLY_LIMIT - 2 * 400_000


@pytest.mark.usefixtures("store_client")
async def test_hostile_file_and_2000_pages_make_a_small_answer(store_url: str) -> None:
    body = {"robots": HOSTILE["agents of a group"], "urls": urls(2000), "agents": ["0000"]}
    async with running(store_url) as service:
        response = await service.client.post("/v1/test", json=body)
    assert response.status_code == 200
    assert len(response.json()["rows"]) == 2000
    assert len(response.content) < 1_000_000  # it was 447 MB


@pytest.mark.parametrize(
    ("wanted", "is_gzipped"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1, GZIP ; q=0.5", True),
        ("identity", False),
        ("", False),
        ("x-gzip", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("deflate, gzip;q=0, br", False),
    ],
)
@pytest.mark.parametrize("many", [1, 50])
@pytest.mark.usefixtures("store_client")
async def test_answers_are_gzipped_for_who_takes_it(store_url: str, wanted: str, is_gzipped: bool, many: int) -> None:
    test = {"robots": ROBOTS, "urls": urls(many), "agents": ["A", "Googlebot"], "explain": True}
    async with running(store_url) as service:
        plain = await service.client.post("/v1/test", json=test, headers={"Accept-Encoding": "identity"})
        response = await service.client.post("/v1/test", json=test, headers={"Accept-Encoding": wanted})
    assert (response.status_code, response.headers["Vary"]) == (200, "Accept-Encoding")
    assert response.headers.get("Content-Encoding") == ("gzip" if is_gzipped else None)
    assert response.json() == plain.json()
    assert (response.num_bytes_downloaded < plain.num_bytes_downloaded) == is_gzipped
