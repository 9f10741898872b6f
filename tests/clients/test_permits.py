"""The protocol of permits: encoding questions, and parsing any answer."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from robots_decisions.conversation import RequestPermit, Sleep, permit_conversation
from robots_decisions.outcomes import Collected
from robots_decisions.permits import (
    MAX_DELAY,
    PACE,
    Answer,
    Denied,
    Granted,
    InvalidQuestion,
    NoAnswer,
    RetryLater,
    checked_caller,
    encode,
    headers,
    outcome,
    outcome_path,
    parse_answer,
    parse_backoff,
    permit_question,
    question,
)
from robots_decisions.question import answered_agent, asking, origin_key, site_key, without_credentials

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


def test_permit_is_parsed_as_granted() -> None:
    assert read(ALLOW) == Granted("W1siaHR0cCJd.Zm9v", 1.5, 2.0)
    assert read({**ALLOW, "degraded": True}) == Granted("W1siaHR0cCJd.Zm9v", 1.5, 2.0, degraded=True)


@pytest.mark.parametrize("edge", [None, [], "refused", 1])
def test_only_an_object_as_edge_means_refusals(edge: object) -> None:
    granted = read({**ALLOW, "edge": edge})
    assert isinstance(granted, Granted)
    assert not granted.refused
    assert not granted.is_urgent(200)
    told = read({**ALLOW, "edge": {}})
    assert isinstance(told, Granted)
    assert told.is_urgent(200)
    assert not told.is_urgent(404)


def later(seconds: float, reason: str, interval: float = 0.0, **members: Any) -> RetryLater:
    """The answer without its sentence."""
    return RetryLater(seconds, reason, interval, **members)


def bare(answer: Answer) -> Answer:
    """The answer without its sentence."""
    return replace(answer, why="") if isinstance(answer, RetryLater | Denied) else answer


def test_wait_too_long_is_retry_later() -> None:
    too_long = read({**ALLOW, "permit": None, "go_at": None, "wait": 40, "retry_after": 30})
    assert bare(too_long) == later(30.0, PACE, 2.0)


def test_a_disallow_says_why() -> None:
    rule = {"directive": "disallow", "pattern": "/private/", "line": 2}
    said: dict[str, Any] = {"verdict": "disallow", "allowed": False, "reason": "rule", "rule": rule}
    refused = Denied("rule", "disallow: /private/", 2, "line 2 of robots.txt: disallow: /private/.")
    assert read(said) == refused
    assert read({**said, "explanation": {"summary": "Line 2"}}) == replace(refused, why="Line 2.")
    assert read({**said, "reason": "forbidden", "rule": None}) == Denied("forbidden", why="forbidden.")


def test_defer_is_retry_later_by_the_services_clock() -> None:
    said = {"verdict": "defer", "allowed": False, "reason": "unreachable", "retry_at": "2026-11-21T18:35:00Z"}
    assert bare(read(said, date="Sat, 21 Nov 2026 18:30:00 GMT")) == later(300.0, "unreachable")
    soon = datetime.fromtimestamp(NOW + 90, UTC).isoformat()
    assert bare(read({**said, "retry_at": soon}, date="no date")) == later(90.0, "unreachable")


@pytest.mark.parametrize("status", [429, 503])
def test_busy_service_is_retry_later(status: int) -> None:
    why = f"answers {status}: busy."
    assert read({"detail": "busy"}, status, retry_after="7") == later(7.0, "busy", why=why, status=status)
    other = read({"detail": "down"}, status)
    assert isinstance(other, RetryLater if status == 429 else NoAnswer)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_rejected_question_is_invalid_question(status: int) -> None:
    said = {"detail": "'ftp:' is no web\nURL"}
    assert read(said, status) == InvalidQuestion(f"{status}: 'ftp:' is no web?URL.")


@pytest.mark.parametrize("status", [201, 301, 401, 403, 404, 500, 502])
def test_any_other_status_is_no_answer(status: int) -> None:
    answer = read(ALLOW, status)
    assert isinstance(answer, NoAnswer)
    assert (answer.remedy is None) == (status >= 500)


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


def test_pauses_are_bounded() -> None:
    defer = {"verdict": "defer", "allowed": False, "reason": "pending", "retry_at": "0001-01-01T00:00:00Z"}
    assert bare(read(defer)) == later(1.0, "pending")
    assert bare(read({**defer, "retry_at": "9999-12-31T23:59:59Z"})) == later(MAX_DELAY, "pending")
    assert bare(read({**ALLOW, "permit": None, "retry_after": 0})) == later(0.05, PACE, 2.0)


def test_reason_is_a_word() -> None:
    refused = read({"verdict": "disallow", "allowed": False, "reason": "x\n" * 50})
    assert bare(refused) == Denied("unknown")


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
def test_any_json_object_parses(wrong: dict[str, object], status: int, fields: dict[str, str]) -> None:
    answer = parse_answer(status, fields, json.dumps({**ALLOW, **wrong}).encode(), NOW)
    if isinstance(answer, Granted):
        assert status == 200
        assert 0 <= answer.wait <= 3600
    parse_backoff(status, json.dumps(wrong).encode())


def test_backoff_is_read_from_the_response_to_an_outcome() -> None:
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
def test_credentials_and_fragments_are_not_sent(url: str, expected: str) -> None:
    assert without_credentials(url) == expected
    assert question(url, {"agent": "A"}, 1)["url"] == expected


def test_origin_key_is_scheme_and_authority_and_site_key_is_the_host() -> None:
    assert origin_key("HTTP://me@H.example:80/a/b?c") == "http://h.example:80"
    assert site_key("HTTP://me@H.example:80/a/b?c") == site_key("https://h.example") == "h.example"
    assert site_key("http://[::1]:80/") == "[::1]"


def test_members_are_checked() -> None:
    at = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)
    every = asking(agent=["A", "B"], purpose="search", dialect="google", max_age=60, as_of=at)
    assert every["as_of"] == "2026-11-21T18:30:00+00:00"
    assert list(every) == ["agent", "purpose", "dialect", "max_age", "as_of"]
    assert asking() == {}
    every_wrong: list[dict[str, Any]] = [
        {"agent": []},
        {"agent": ["A", " "]},
        {"purpose": ""},
        {"dialect": ""},
        {"max_age": -1},
        {"max_age": float("nan")},
        {"as_of": "yesterday"},
        {"as_of": datetime(2026, 11, 21, 18, 30)},  # noqa: DTZ001 - no time zone
    ]
    for wrong in every_wrong:
        (name,) = wrong
        with pytest.raises(ValueError, match=name):
            asking(**wrong)


def test_answer_is_about_one_of_the_agents() -> None:
    assert answered_agent("A", {"agent": "B"}) == "A"
    assert answered_agent(["A", "B"], {"agent": "B"}) == "B"
    assert answered_agent(["A", "B"], {"agent": "C"}) == "A"
    assert answered_agent(["A", "B"], {}) == "A"


def test_the_key_and_the_caller_are_checked() -> None:
    assert headers("secret")["Authorization"] == "Bearer secret"
    assert "Authorization" not in headers(None)
    with pytest.raises(ValueError, match="API key"):
        headers("two\r\nlines")
    assert checked_caller(None) is None
    assert permit_question("http://h/", {"agent": "A"}, 9999, "pod-1") == {
        "url": "http://h/",
        "agent": "A",
        "max_wait": 3600.0,
        "wait": 10.0,
        "caller": "pod-1",
    }
    with pytest.raises(ValueError, match="'a b'"):
        checked_caller("a b")


def test_any_question_can_be_encoded() -> None:
    asked = question("http://h/\ud800", {"agent": "Bot\udfff"}, 0)
    assert json.loads(encode(asked)) == asked


def test_outcome_has_the_status_and_retry_after_of_the_page() -> None:
    assert outcome(503, None, 0.1234) == {"status": 503, "elapsed": 0.123}
    assert outcome(429, "9" * 200, 0)["retry_after"] == "9" * 100
    assert outcome_path("a/../b") == "/v1/permits/a%2F..%2Fb/outcome"


def talk(
    answers: Sequence[Answer], max_wait: float, *, retry: bool = False, stall: float = 0
) -> tuple[Answer, list[float | str]]:
    """The result of a conversation whose sleeps end `stall` seconds late, with its requests and sleeps."""
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


def test_slot_begins_after_its_wait() -> None:
    turn = Granted("p", 3, 2)
    assert talk([turn], 10) == (turn, ["ask 10", 3])


def test_retry_asks_for_the_remaining_time() -> None:
    turn = Granted("p", 0, 2)
    assert talk([RetryLater(4, PACE), RetryLater(3, "pending"), turn], 10) == (
        turn,
        ["ask 10", 4, "ask 6", 3, "ask 3", 0],
    )


def test_wait_beyond_max_wait_ends_at_once() -> None:
    assert talk([RetryLater(11, PACE)], 10) == (RetryLater(11, PACE), ["ask 10"])


def test_missed_slot_is_not_used() -> None:
    late, turn = Granted("late", 1, 0.5), Granted("p", 0.0, 10)
    assert talk([late, turn], 10, stall=0.6) == (turn, ["ask 10", 1, "ask 8.4", 0.0])


def test_slot_beyond_max_wait_is_no_answer() -> None:
    assert isinstance(talk([Granted("p", 11, 1)], 10)[0], NoAnswer)


@pytest.mark.parametrize("answer", [Denied("rule"), InvalidQuestion("no URL"), NoAnswer("gone")])
def test_final_answer_ends_the_conversation(answer: Answer) -> None:
    assert talk([answer], 10) == (answer, ["ask 10"])


def test_retry_asks_a_silent_service_until_max_wait() -> None:
    silent = NoAnswer("gone")
    assert talk([silent] * 9, 4, retry=True) == (
        silent,
        ["ask 4", 0.5, "ask 3.5", 1.0, "ask 2.5", 2.0, "ask 0.5"],
    )


def test_one_of_the_outcomes_of_two_threads_begins_the_wait() -> None:
    """Without it, no timer would run, and all later outcomes would be lost."""

    class Interrupted(list[Any]):
        def append(self, item: Any) -> None:
            super().append(item)
            if len(self) == 1:
                other.start()
                other.join(0.2)  # it ends in this time, unless it has to wait for this one

    collected = Collected()
    firsts: list[bool] = []
    collected._items = Interrupted()
    other = threading.Thread(target=lambda: firsts.append(collected.add({"permit": "b"})))
    firsts.append(collected.add({"permit": "a"}))
    other.join()
    assert sorted(firsts) == [False, True]
    assert [item["permit"] for item in collected.taken()] == ["a", "b"]
