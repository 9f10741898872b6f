"""What a crawler asks and what the answer comes to, whatever the answer is."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clients.permits import (
    MAX_DELAY,
    PACE,
    Answer,
    Denied,
    Grant,
    InvalidQuestion,
    NoAnswer,
    RequestPermit,
    RetryLater,
    Sleep,
    checked_caller,
    encode,
    headers,
    origin_key,
    outcome,
    outcome_path,
    parse_answer,
    parse_backoff,
    permit_conversation,
    question,
    without_credentials,
)
from tests.doubles import Clock

NOW = 1_795_286_000.0
ALLOW: Mapping[str, Any] = {
    "verdict": "allow",
    "allowed": True,
    "reason": "no_match",
    "rule": None,
    "retry_at": None,
    "permit": "W1siaHR0cCJd.Zm9v",
    "go_at": "2026-11-21T18:30:01.500Z",
    "wait": 1.5,
    "interval": 2.0,
    "retry_after": None,
    "degraded": False,
}


def read(said: object, status: int = 200, **fields: str) -> Answer:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return parse_answer(status, {name.replace("_", "-"): value for name, value in fields.items()}, body, NOW)


def test_a_permit_is_a_turn() -> None:
    assert read(ALLOW) == Grant("W1siaHR0cCJd.Zm9v", 1.5, 2.0)
    assert read({**ALLOW, "degraded": True}) == Grant("W1siaHR0cCJd.Zm9v", 1.5, 2.0, degraded=True)


def test_a_wait_that_is_too_long_is_later() -> None:
    assert read({**ALLOW, "permit": None, "go_at": None, "wait": 40, "retry_after": 30}) == RetryLater(30.0, PACE, 2.0)


def test_a_disallow_names_its_rule() -> None:
    rule = {"directive": "disallow", "pattern": "/private/", "line": 2}
    refused = read({"verdict": "disallow", "allowed": False, "reason": "rule", "rule": rule})
    assert refused == Denied("rule", "disallow: /private/", 2)
    assert str(refused) == "line 2 of robots.txt: disallow: /private/"
    assert str(read({"verdict": "disallow", "allowed": False, "reason": "forbidden", "rule": None})) == "forbidden"


def test_a_defer_is_later_by_the_clock_of_the_service() -> None:
    said = {"verdict": "defer", "allowed": False, "reason": "unreachable", "retry_at": "2026-11-21T18:35:00Z"}
    assert read(said, date="Sat, 21 Nov 2026 18:30:00 GMT") == RetryLater(300.0, "unreachable")
    assert read({**said, "retry_at": datetime.fromtimestamp(NOW + 90, UTC).isoformat()}, date="no date") == RetryLater(
        90.0, "unreachable"
    )


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_later(status: int) -> None:
    assert read({"detail": "busy"}, status, retry_after="7") == RetryLater(7.0, "busy")
    assert isinstance(read({"detail": "down"}, status), NoAnswer)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_question_that_the_service_cannot_read_is_not_taken(status: int) -> None:
    assert read({"detail": "'ftp:' is no web\nURL"}, status) == InvalidQuestion(
        f"it answers {status}: 'ftp:' is no web?URL"
    )


@pytest.mark.parametrize("status", [201, 301, 401, 403, 404, 500, 502])
def test_any_other_status_says_nothing_of_the_page(status: int) -> None:
    assert isinstance(read(ALLOW, status), NoAnswer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "Allow"},
        {"verdict": ["allow"]},
        {"verdict": None},
        {"allowed": "true"},
        {"allowed": 1},
        {"allowed": False},
        {"permit": ""},
        {"permit": "../../robots"},
        {"permit": ".."},
        {"permit": "a" * 2049},
        {"permit": 7},
        {"permit": None},
        {"wait": None},
        {"wait": -1},
        {"wait": True},
        {"wait": "1"},
        {"wait": 3601},
        {"wait": 10**400},
        {"wait": float("nan")},
        {"wait": float("inf")},
        {"permit": None, "retry_after": float("nan")},
        {"permit": None, "retry_after": "soon"},
        {"verdict": "defer", "retry_at": None},
        {"verdict": "defer", "retry_at": "2026-11-21T18:35:00"},
        {"verdict": "defer", "retry_at": "soon"},
        {"verdict": "defer", "retry_at": 5},
    ],
)
def test_malformed_answer_permits_no_request(wrong: Mapping[str, object]) -> None:
    assert isinstance(read({**ALLOW, **wrong}), NoAnswer)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"\xff", b"{", b"[" * 100_000, b"1" * 10_000, b"<html>"])
def test_answer_that_is_not_an_object_permits_no_request(body: bytes) -> None:
    assert isinstance(read(body), NoAnswer)
    assert parse_backoff(200, body) is None


def test_no_pause_is_longer_than_a_day_or_none_at_all() -> None:
    defer = {"verdict": "defer", "allowed": False, "reason": "pending", "retry_at": "0001-01-01T00:00:00Z"}
    assert read(defer) == RetryLater(1.0, "pending")
    assert read({**defer, "retry_at": "9999-12-31T23:59:59Z"}) == RetryLater(MAX_DELAY, "pending")
    assert read({**ALLOW, "permit": None, "retry_after": 0}) == RetryLater(0.05, PACE, 2.0)


def test_a_reason_is_a_plain_word() -> None:
    assert read({"verdict": "disallow", "reason": "x\n" * 50}) == Denied("unknown")


_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*ALLOW, "detail"]), _values | st.sampled_from(["allow", "defer", "disallow"])),
    st.sampled_from([200, 422, 429, 500, 503]),
    st.dictionaries(st.sampled_from(["date", "retry-after"]), st.text(max_size=70)),
)
def test_any_object_is_some_answer(wrong: dict[str, object], status: int, fields: dict[str, str]) -> None:
    answer = parse_answer(status, fields, json.dumps({**ALLOW, **wrong}).encode(), NOW)
    if isinstance(answer, Grant):
        assert status == 200
        assert 0 <= answer.wait <= 3600
    parse_backoff(status, json.dumps(wrong).encode())


def test_a_hold_is_read_from_the_response_to_an_outcome() -> None:
    assert parse_backoff(200, b'{"released": false, "backoff": 12.5, "degraded": false}') == 12.5
    assert parse_backoff(200, b'{"released": true, "backoff": null, "degraded": false}') == 0.0
    assert parse_backoff(200, b'{"backoff": 1e300}') == MAX_DELAY
    assert parse_backoff(404, b'{"backoff": 1}') is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h/a?b#c", "http://h/a?b"),
        ("http://user:pass@h:8/a@b", "http://h:8/a@b"),
        ("https://a@b@h?x=@", "https://h?x=@"),
        ("no url", "no url"),
    ],
)
def test_credentials_and_fragments_are_not_asked_about(url: str, expected: str) -> None:
    assert without_credentials(url) == expected
    assert question(url, "A", 1)["url"] == expected


def test_origin_key_is_scheme_and_authority() -> None:
    assert origin_key("HTTP://me@H.example:80/a/b?c") == "http://h.example:80"


def test_the_key_and_the_caller_are_checked() -> None:
    assert headers("secret")["Authorization"] == "Bearer secret"
    assert "Authorization" not in headers(None)
    with pytest.raises(ValueError, match="API key"):
        headers("two\r\nlines")
    assert checked_caller(None) is None
    assert question("http://h/", "A", 9999, caller="pod-1") == {
        "url": "http://h/",
        "agent": "A",
        "max_wait": 3600.0,
        "wait": 10.0,
        "caller": "pod-1",
    }
    with pytest.raises(ValueError, match="'a b'"):
        checked_caller("a b")


def test_a_question_is_sent_whatever_it_holds() -> None:
    assert json.loads(encode(question("http://h/\ud800", "Bot\udfff", 0))) == question(
        "http://h/\ud800", "Bot\udfff", 0
    )


def test_an_outcome_says_what_the_page_said() -> None:
    assert outcome(503, None, 0.1234) == {"status": 503, "elapsed": 0.123}
    assert outcome(429, "9" * 200, 0)["retry_after"] == "9" * 100
    assert outcome_path("a/../b") == "/v1/permits/a%2F..%2Fb/outcome"


def talk(
    answers: Sequence[Answer], max_wait: float, *, retry: bool = False, stall: float = 0
) -> tuple[Answer, list[float | str]]:
    """What comes of a conversation in which sleepers wake up `stall` seconds late, and what was asked and slept."""
    clock = Clock(100.0)
    conversation = permit_conversation(max_wait, retry=retry, monotonic=clock)
    steps: list[float | str] = []
    rest = iter(answers)
    heard: Answer | None = None
    while True:
        try:
            step = conversation.send(heard)
        except StopIteration as end:
            return end.value, steps
        match step:
            case RequestPermit(max_wait=wait):
                steps.append(f"ask {wait:g}")
                heard = next(rest)
            case Sleep(seconds=seconds):
                steps.append(seconds)
                heard = None
                clock.now += seconds + stall


def test_a_turn_begins_when_its_wait_is_over() -> None:
    turn = Grant("p", 3, 2)
    assert talk([turn], 10) == (turn, ["ask 10", 3])


def test_who_comes_later_asks_for_the_rest_of_his_time() -> None:
    turn = Grant("p", 0, 2)
    assert talk([RetryLater(4, PACE), RetryLater(3, "pending"), turn], 10) == (
        turn,
        ["ask 10", 4, "ask 6", 3, "ask 3", 0],
    )


def test_who_cannot_wait_so_long_is_told_at_once() -> None:
    assert talk([RetryLater(11, PACE)], 10) == (RetryLater(11, PACE), ["ask 10"])


def test_a_turn_that_was_missed_is_not_taken() -> None:
    late, turn = Grant("late", 1, 0.5), Grant("p", 0.0, 10)
    assert talk([late, turn], 10, stall=0.6) == (turn, ["ask 10", 1, "ask 8.4", 0.0])


def test_a_turn_beyond_the_time_that_there_is_is_no_turn() -> None:
    assert isinstance(talk([Grant("p", 11, 1)], 10)[0], NoAnswer)


@pytest.mark.parametrize("answer", [Denied("rule"), InvalidQuestion("no URL"), NoAnswer("gone")])
def test_what_will_not_change_ends_the_conversation(answer: Answer) -> None:
    assert talk([answer], 10) == (answer, ["ask 10"])


def test_who_insists_asks_a_silent_service_until_his_time_is_over() -> None:
    silent = NoAnswer("gone")
    assert talk([silent] * 9, 4, retry=True) == (
        silent,
        ["ask 4", 0.5, "ask 3.5", 1.0, "ask 2.5", 2.0, "ask 0.5"],
    )
