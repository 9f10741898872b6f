"""Answers from cached fragments equal those encoded afresh, byte for byte; and their Cache-Control."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.answers.answer_caching import AnswerCaching
from app.api.answers.answer_tags import VOLATILE, FileTags
from app.api.answers.encoding import AnswerEncoder
from app.api.answers.schema import AnswerOut
from app.api.answers.serialize import answer_out
from app.cache.freshness import DAY, Failing, Freshness, Snapshot, State
from app.cache.result import CacheResult, Source
from app.decisions.evaluate import Decision, Question, judge_policy
from app.decisions.parsed_files import PARSED_FILES
from app.overrides.table import Matching, Override
from robots_core.agents.directory import builtin_directory
from robots_core.origin import read_target
from robots_core.purposes.policy import PURPOSES, PurposePolicy
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable
from robots_core.robots.agents import first_of, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.judge import judge
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission
from tests.robots.cases import rows

NOW = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)

FILES = [
    b"",
    b"User-agent: *\nDisallow: /a\nAllow: /a/b$\nCrawl-delay: 2.5\n",
    'Sitemap: https://h.example/"sitemaps":[.xml\nUser-agent: ünï\nUser-agent: *\nDisallow: /a"\\\x01'.encode(),
    b"User-agent: ExampleBot\nUser-agent: *\nDisallow: /\nRequest-rate: 1/60s 1800-1900\nRequest-rate: 1/5\n",
    b"User-agent: *\nVisit-time: 0600-1845\nDisallow: /a\n\nUser-agent: Googlebot\nAllow: /\n",
    b"User-agent: *\nContent-Usage: /a train-ai=n\nContent-Usage: train-ai=y\nContent-Signal: age=no, sitemaps=yes\n",
    b'User-agent: *\nContent-Signal: "recheck_at"=1, x=\xff\nDisallow: /a\n',
]
STATED = (
    b"User-agent: *\nContent-Signal: search=yes,ai-train=no\nDisallowAITraining: /a/b\nLicense: https://h.example/l\n"
)
FAILURE = Unreachable(Cause.SERVER_ERROR, 503)
ACCESSES: list[Access] = [
    *(Successful(200, body) for body in FILES),
    Successful(206, FILES[1], truncated=True),
    Unavailable(404),
    Unavailable(403),
    Unavailable(302, Cause.REDIRECT_LOOP),
    Blocked("10.0.0.1"),
    FAILURE,
    Unreachable(Cause.CHALLENGE, 200),
    Successful(200, STATED),
]


def snapshot(access: Access, *, failing: bool = False, final_url: str | None = None) -> Snapshot:
    at = NOW.timestamp() - 600
    failed = failing or isinstance(access, Unreachable)
    return Snapshot(access, at, final_url, failing=Failing(at, at, 1, FAILURE) if failed else None)


SNAPSHOTS = [
    *map(snapshot, ACCESSES),
    snapshot(ACCESSES[1], failing=True),
    snapshot(ACCESSES[1], final_url='https://h.example/"age":7/é.txt'),
]
PARSED = [
    RobotsTxt(it.access.body, truncated=it.access.truncated) if isinstance(it.access, Successful) else None
    for it in SNAPSHOTS
]

POLICIES = [
    None,
    PurposePolicy(PURPOSES),
    PurposePolicy(PURPOSES, enforce=True),
    PurposePolicy(("ai-train",), enforce=True),
    PurposePolicy(("search",)),
]
PATHS = ["/", "/a", "/a/b", "/a/b?c", "/robots.txt", '/"\\\t\x7f', "/é€\U0001f600", "/%7e*$"]
AGENTS = ["ExampleBot", "examplebot/1.0", "Googlebot", "SeznamBot", "*", "other-bot", "other-bot,ExampleBot"]


def answer(
    which: int,
    path: str,
    agent: str,
    dialect: str | None = None,
    *,
    at: datetime | None = None,
    policy: PurposePolicy | None = None,
    **other: object,
) -> Decision:
    """The decision `after` seconds from the snapshot."""
    known = SNAPSHOTS[which]
    after = float(str(other.get("after", 0.0)))
    now = NOW.timestamp() + after
    who = first_of([read_agent(name) for name in agent.split(",")])
    reader = DIALECTS[dialect or who.dialect]
    question = Question(read_target("https://h.example" + path), who, reader, at, policy=policy)
    verdict = judge(known.access, PARSED[which], reader, who, question.target.path)
    stale = bool(other.get("stale"))
    held = CacheResult(known, Freshness(now + 3600, State.FRESH, now - known.fetched_at, stale), Source.MEMORY)
    decision = Decision(question, verdict, held, PARSED[which], now, revision=which)
    return decision if policy is None else judge_policy(decision, policy)


def whole(given_: Decision) -> bytes:
    """The answer as its model encodes it."""
    return answer_out(given_, explained=False).model_dump_json().encode()


questions = st.builds(
    answer,
    st.integers(0, len(SNAPSHOTS) - 1),
    st.sampled_from(PATHS),
    st.sampled_from(AGENTS),
    st.sampled_from([None, *DIALECTS]),
    at=st.one_of(st.none(), st.integers(-100, 100).map(lambda minutes: NOW + timedelta(minutes=17 * minutes))),
    after=st.one_of(st.just(0), st.floats(0, 3 * DAY)),
    stale=st.booleans(),
    policy=st.sampled_from(POLICIES),
)


def lasting(given_: Decision) -> bytes:
    """What an answer says, but for the members that its tag leaves out."""
    return answer_out(given_, explained=False).model_dump_json(exclude={"robots": set(VOLATILE)}).encode()


@given(st.lists(questions, min_size=2, max_size=12))
def test_two_answers_have_one_tag_if_and_only_if_they_say_the_same(answers: list[Decision]) -> None:
    encoder = AnswerEncoder()
    said: dict[bytes, bytes] = {}
    for decision in filter(lambda it: it.verdict.permission is not Permission.DEFER, answers):
        content, tag = encoder.encode_tagged(decision, explained=False)
        assert content == encoder.encode(decision)
        assert said.setdefault(tag.field, lasting(decision)) == lasting(decision)
        assert said.setdefault(lasting(decision), tag.field) == tag.field


@given(st.lists(questions, min_size=2, max_size=12))
def test_cached_fragments_give_the_same_json(answers: list[Decision]) -> None:
    encoder = AnswerEncoder()
    for given_ in (*answers, *answers):
        encoded = encoder.encode(given_)
        assert encoded == whole(given_)
        AnswerOut.model_validate_json(encoded)


@given(st.lists(questions, min_size=2, max_size=6), st.sets(st.sampled_from(list(AnswerOut.model_fields))))
def test_chosen_members_are_those_of_the_whole_answer(answers: list[Decision], chosen: set[str]) -> None:
    encoder = AnswerEncoder()
    fields = [name for name in AnswerOut.model_fields if name in chosen]
    for given_ in (*answers, *answers):
        expected = {name: value for name, value in json.loads(whole(given_)).items() if name in chosen}
        assert list(json.loads(encoder.encode(given_, fields)).items()) == list(expected.items())
        assert encoder.encode(given_) == whole(given_)  # a choice leaves nothing behind in what is cached


def test_parts_of_as_many_files_stay_as_are_parsed() -> None:
    encoder = AnswerEncoder()
    for _ in range(2):
        for number in range(PARSED_FILES):
            encoder.encode(answer(1, "/a", "ExampleBot")._replace(revision=number))
        assert encoder.usage[1] == PARSED_FILES


def test_different_answers_share_no_wrong_fragment() -> None:
    encoder = AnswerEncoder()
    every = [
        answer(which, path, agent, dialect)
        for which in range(len(SNAPSHOTS))
        for path in PATHS
        for agent in AGENTS
        for dialect in (None, "google", "draft1996")
    ]
    for given_ in every + every[::-1]:
        assert encoder.encode(given_) == whole(given_)


@pytest.mark.parametrize("changes", [{"star_delay": True}, {"unlisted": False}])
def test_the_row_of_a_crawler_may_change_in_agents_file(changes: dict[str, Any]) -> None:
    robots = RobotsTxt(b"User-agent: *\nCrawl-delay: 7\n\nUser-agent: Gogglebot\nDisallow: /a\n")
    before = answer(1, "/a", "Gogglebot")
    question = before.question
    assert question.agent.unlisted
    verdict = judge(SNAPSHOTS[1].access, robots, question.dialect, question.agent, question.target.path)
    before = before._replace(robots=robots, verdict=verdict)
    after = before._replace(question=question._replace(agent=replace(question.agent, **changes)))
    encoder = AnswerEncoder()
    assert encoder.encode(before) == whole(before) != whole(after)
    assert encoder.encode(after) == whole(after)


def test_cases_of_every_dialect_are_encoded_alike() -> None:
    encoder = AnswerEncoder()
    for revision, case in enumerate(rows("verdict-cases.jsonl")):
        access = Successful(200, case["robots"].encode())
        robots = RobotsTxt(access.body)
        held = CacheResult(
            snapshot(access), Freshness(NOW.timestamp() + 60, State.FRESH, 1.5, stale=False), Source.STORE
        )
        question = Question(read_target(case["url"]), read_agent(case["agent"]), DIALECTS[case["dialect"]])
        verdict = judge(access, robots, question.dialect, question.agent, question.target.path)
        given_ = Decision(question, verdict, held, robots, NOW.timestamp(), revision=revision)
        assert encoder.encode(given_) == encoder.encode(given_) == whole(given_)


def test_fragment_cache_is_bounded_in_bytes() -> None:
    encoder = AnswerEncoder(20_000)
    entries = 0
    for number in range(500):
        encoder.encode(answer(1, f"/{number}", f"Bot{number}")._replace(revision=number % 50))
        size, entries = encoder.usage
        assert 0 < size <= 20_000
    assert entries > 2


def test_parts_of_one_file_are_bounded_in_bytes() -> None:
    encoder = AnswerEncoder(20_000)
    largest = 0
    for number in range(100):
        given_ = answer(1, f"/{number}", f"Bot{number}")
        assert encoder.encode(given_) == whole(given_)
        largest = max(largest, encoder.usage[0])
    assert 10_000 < largest <= 20_000


def test_a_part_that_has_ended_is_replaced() -> None:
    encoder = AnswerEncoder()
    sizes = set()
    for minutes in range(0, 24 * 60, 60):
        given_ = answer(3, "/", "ExampleBot", after=60.0 * minutes)
        assert encoder.encode(given_) == whole(given_)
        sizes.add(encoder.usage[0] // 1000)
    assert len(sizes) == 1


def test_cached_rate_ends_at_its_valid_until() -> None:
    rate = json.loads(AnswerEncoder().encode(answer(3, "/", "ExampleBot")))["rate"]
    assert rate["valid_until"] == "2026-11-21T19:00:00Z"


HOUR, RATE, VISIT = "private, max-age=3600", "private, max-age=1800", "private, max-age=900"

KEEPING = [
    ("until the file is checked again", answer(1, "/", "a"), HOUR),
    ("a file that is missing too", answer(8, "/", "a"), HOUR),
    ("until the rate ends", answer(3, "/", "a"), RATE),
    ("until the visit time ends", answer(4, "/", "a"), VISIT),
    ("a rate of another instant does not end", answer(3, "/", "a", at=NOW), HOUR),
    ("a copy that stands in", answer(1, "/", "a", stale=True), HOUR),
    ("a defer, never", answer(12, "/", "a"), "no-store"),
    ("a challenge, never", answer(13, "/", "a"), "no-store"),
    ("less than a second is not worth it", answer(3, "/", "a", after=1799.5), "no-store"),
]


@pytest.mark.parametrize(("given_", "header"), [row[1:] for row in KEEPING], ids=[row[0] for row in KEEPING])
def test_rfc9111_answer_may_be_cached_for_so_many_seconds_at_most(given_: Decision, header: str) -> None:
    assert kept(given_) == header
    for seconds in (1, 60, 899, 1800, 86_400):
        limited = header
        if header != "no-store":
            limited = f"private, max-age={min(seconds, int(header.rpartition('=')[2]))}"
        assert kept(given_, seconds) == limited


def kept(given_: Decision, seconds: int = 86_400) -> str:
    return AnswerCaching(seconds, FileTags(builtin_directory)).of_decision(given_)


def test_rfc9111_max_age_of_the_question_limits_caching() -> None:
    given_ = answer(1, "/", "a")
    for max_age, header in ((700, "private, max-age=100"), (600, "no-store"), (0, "no-store"), (1e9, HOUR)):
        assert kept(given_._replace(question=given_.question._replace(max_age=max_age))) == header


def test_rfc9111_stale_or_deferred_answers_are_not_cached() -> None:
    given_ = answer(1, "/", "a")
    for state in (State.GRACE, State.DUE):
        fresh = Freshness(NOW.timestamp() + 3600, state, 600.0, stale=False)
        assert kept(given_._replace(cached=CacheResult(given_.cached.snapshot, fresh, Source.MEMORY))) == "no-store"
    assert kept(given_._replace(cached=CacheResult(None, None, Source.NONE), robots=None, revision=None)) == "no-store"


def test_rfc9111_overridden_answers_end_with_the_override() -> None:
    overridden = answer(1, "/", "a")._replace(revision=None, overrides=Matching(None, None, None, None))
    assert kept(overridden) == HOUR
    override = Override("a", "h.example", (), "delay", "why", NOW.timestamp() + 300, shadow=False, delay=60)
    assert kept(overridden._replace(overrides=Matching(None, override, None, None))) == "private, max-age=300"
