"""`evaluate` computes decisions, and overrides are applied to its result."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from app.cache.freshness import Freshness, Snapshot, State
from app.cache.result import CacheResult, Source
from app.decisions.evaluate import PENDING_SECONDS, CachedFile, Decision, Question, evaluate, is_partial, judge_policy
from app.decisions.overriding import apply
from app.overrides.override_json import read_override
from app.overrides.table import Matching, Override
from robots_core.origin import read_target
from robots_core.purposes.policy import PurposePolicy
from robots_core.robots.access import BODY_LIMIT, Access, Blocked, Cause, Successful, Unavailable, Unreachable
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.rates import DAY_MINUTES, RateSource
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.usage import Preference
from robots_core.robots.verdict import Permission, Reason
from tests.corpus import real_files
from tests.robots.cases import rows

ROOT = Path(__file__).parents[2]

NOW = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)
RECHECK = NOW.timestamp() + 3600
RULES = b"User-agent: *\nDisallow: /a\nCrawl-delay: 2\nRequest-rate: 1/10 1800-1859\nVisit-time: 0600-1845\n"


def question(path: str = "/", at: datetime | None = None) -> Question:
    agent = read_agent("ExampleBot")
    return Question(read_target(f"https://h.example{path}"), agent, DIALECTS["rfc9309"], at)


def file(access: Access, revision: int | None = 1) -> CachedFile:
    cached = CacheResult(
        Snapshot(access, NOW.timestamp()), Freshness(RECHECK, State.FRESH, 0.0, stale=False), Source.MEMORY
    )
    return CachedFile(cached, RobotsTxt(access.body) if isinstance(access, Successful) else None, revision)


def decided(access: Access, path: str = "/", *, at: datetime | None = None, forbidden: bool = False) -> Decision:
    return evaluate(question(path, at), file(access), NOW.timestamp(), forbidden=forbidden)


def override(expires_at: float | None = None, **members: object) -> Override:
    whole = {"scope": "h.example", "reason": "why", "expires_at": expires_at, "action": next(iter(members)), **members}
    return read_override("one", whole)


def overridden(decision: Decision, expires_at: float | None = None, **members: object) -> Decision:
    one = override(expires_at, **members)
    deciding, delaying = (None, one) if one.action == "delay" else (one, None)
    return apply(decision, Matching(deciding, delaying, deciding, delaying), lambda own: RobotsTxt(own.body))


def test_unknown_file_defers_for_a_few_seconds() -> None:
    nothing = CachedFile(CacheResult(None, None, Source.NONE), None)
    decision = evaluate(question(), nothing, 1000.0, forbidden=False)
    assert (decision.verdict.permission, decision.verdict.reason) == (Permission.DEFER, Reason.PENDING)
    assert (decision.retry_at, decision.allowed, decision.rate) == (1000.0 + PENDING_SECONDS, False, None)


def test_unreachable_file_defers_until_the_recheck() -> None:
    assert decided(Unreachable(Cause.SERVER_ERROR, 503)).retry_at == RECHECK


def test_on_forbidden_deny_closes_the_site() -> None:
    assert decided(Unavailable(403)).allowed
    assert decided(Unavailable(403), forbidden=True).verdict.reason is Reason.FORBIDDEN


def test_rate_and_visit_end_at_the_earlier_of_the_two() -> None:
    decision = decided(Successful(200, RULES))
    assert decision.rate is not None
    assert decision.rate.value is not None
    assert decision.visit is not None
    assert (decision.rate.value.interval, decision.crawl_delay) == (10, 2)
    assert decision.rate.valid_until == NOW + timedelta(minutes=30)
    assert decision.visit.visit_now
    assert decision.valid_until == decision.visit.valid_until == NOW + timedelta(minutes=15)


DAYS = [datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 12, 31, tzinfo=UTC), datetime(2028, 2, 28, tzinfo=UTC)]

RATE_CASES = [
    (case["id"], case["robots"].encode(), case["agent"], case["dialect"]) for case in rows("rate-cases.jsonl")
]


@pytest.mark.parametrize(("robots", "agent", "dialect"), [pytest.param(*case, id=name) for name, *case in RATE_CASES])
def test_f6_the_next_rate_begins_with_the_next_minute_that_has_another(robots: bytes, agent: str, dialect: str) -> None:
    check_next_rates(robots, agent, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_f6_the_next_rate_of_real_files_begins_with_its_minute(dialect: str) -> None:
    rated = [body for body in real_files().values() if b"request-rate" in body.lower()]
    assert len(rated) > 10
    for body in rated:
        check_next_rates(body, "SeznamBot", dialect)


def check_next_rates(robots: bytes, agent: str, dialect: str) -> None:
    """At each change, at midnight, at the end of a year and before 29 February."""
    one, agent_, dialect_ = file(Successful(200, robots)), read_agent(agent), DIALECTS[dialect]

    def rated(at: datetime) -> Decision:
        asked = question(at=at)._replace(agent=agent_, dialect=dialect_)
        return evaluate(asked, one, NOW.timestamp(), forbidden=False)

    rates = [rated(DAYS[0] + timedelta(minutes=minute)).rate for minute in range(DAY_MINUTES)]
    found = [None if rate is None else rate.value for rate in rates] * 2
    changes = [minute for minute in range(1, 2 * DAY_MINUTES) if found[minute] != found[minute - 1]]
    tried = {0, 719, DAY_MINUTES - 1, *(minute + by for minute in changes for by in (-1, 0, 1))} & {*range(DAY_MINUTES)}
    for day, minute in product(DAYS, tried):
        decision = rated(day + timedelta(minutes=minute, seconds=59))
        following = next((it for it in changes if it > minute), None)
        expected = None if following is None else (day + timedelta(minutes=following), found[following])
        assert decision.next_rate == expected
        assert (decision.rate and decision.rate.valid_until) == (expected and expected[0])


def test_a_rate_that_follows_a_delay_is_the_files_once_the_delay_ends() -> None:
    decision = decided(Successful(200, RULES))  # 10 s until 19:00, then 2 s
    end = datetime(2026, 11, 21, 19, tzinfo=UTC)

    def after(seconds: float, expires_in: float | None) -> tuple[datetime, float | None] | None:
        expires_at = None if expires_in is None else NOW.timestamp() + expires_in
        change = overridden(decision, expires_at, delay=seconds).next_rate
        return change and (change.at, change.rate and change.rate.interval)

    assert after(60, 60) == (NOW + timedelta(minutes=1), 10)
    assert after(60, None) is None  # the delay hides the change
    assert after(5, None) == (end, 5)
    assert after(5, 60) == (end, 2)
    without = overridden(decided(Unavailable(404)), NOW.timestamp() + 60, delay=5.0)
    assert without.next_rate == (NOW + timedelta(minutes=1), None)
    assert overridden(decided(Unavailable(404)), delay=5.0).next_rate is None
    assert decided(Unavailable(404)).next_rate is None


def test_rate_is_evaluated_at_the_given_instant() -> None:
    rate = decided(Successful(200, RULES), at=NOW + timedelta(hours=1)).rate
    assert rate is not None
    assert rate.value is not None
    assert rate.value.interval == 2


def test_disallowed_page_has_no_usage() -> None:
    body = b"User-agent: *\nDisallow: /a\nContent-Usage: train-ai=n\n"
    usage = decided(Successful(200, body), "/b").usage
    assert usage is not None
    assert dict(usage.content_usage) == {"train-ai": Preference("n", 3)}
    assert decided(Successful(200, body), "/a").usage is None


def test_override_replaces_the_verdict_and_the_revision() -> None:
    decision = overridden(decided(Unreachable(Cause.SERVER_ERROR, 503)), action="deny")
    assert (decision.verdict.permission, decision.verdict.reason) == (Permission.DISALLOW, Reason.OVERRIDDEN)
    assert (decision.retry_at, decision.revision) == (None, None)


def test_override_with_a_file_brings_its_rates() -> None:
    own = Successful(200, b"User-agent: *\nDisallow: /\nCrawl-delay: 7\n")
    decision = overridden(decided(Successful(200, RULES)), robots=own.body.decode())
    assert (decision.allowed, decision.crawl_delay, decision.verdict.reason) == (False, 7, Reason.OVERRIDDEN)


def test_delay_only_slows_down_until_it_expires() -> None:
    decision = decided(Successful(200, RULES))
    slow = overridden(decision, NOW.timestamp() + 60, delay=60.0).rate
    assert slow is not None
    assert slow.value is not None
    assert (slow.value.interval, slow.value.source) == (60.0, RateSource.OVERRIDE)
    assert slow.valid_until == NOW + timedelta(minutes=1)
    assert overridden(decision, delay=5.0).rate == decision.rate
    # As slow as the file: its line is named, and it does not end with the override.
    assert overridden(decision, NOW.timestamp() + 60, delay=10.0).rate == decision.rate


def test_i1d_a_page_that_is_refused_for_its_usage_keeps_what_is_stated() -> None:
    file = b"User-agent: *\nDisallow: /closed\nContent-Usage: train-ai=n\n"
    policy = PurposePolicy(("ai-train",), enforce=True)
    refused = judge_policy(decided(Successful(200, file), "/open"), policy)
    assert (refused.allowed, refused.verdict.reason) == (False, Reason.USAGE)
    assert refused.usage is not None
    assert refused.usage.content_usage == {"train-ai": Preference("n", 3)}
    assert judge_policy(decided(Successful(200, file), "/closed"), policy).usage is None


def test_override_never_opens_a_blocked_address() -> None:
    decision = overridden(decided(Blocked("10.0.0.1")), action="allow")
    assert decision.verdict.reason is Reason.BLOCKED_ADDRESS
    assert decision.overrides == Matching(None, None, override(action="allow"), None)


def test_override_never_closes_the_robots_file_itself() -> None:
    decision = overridden(decided(Unreachable(Cause.SERVER_ERROR, 503), "/a"), action="deny")
    assert not decision.allowed
    pending = decision._replace(question=question("/robots.txt"))
    assert overridden(pending, action="deny").verdict.reason is Reason.IMPLICIT


LONG = b"User-agent: *\nDisallow: /s\n\nUser-agent: a\nDisallow: /a\nAllow: /b\n" + b"#\n" * BODY_LIMIT


@pytest.mark.parametrize(
    ("agent", "path", "dialect", "partial"),
    [
        ("a", "/a", "rfc9309", True),
        ("a", "/c", "google", True),
        ("b", "/a", "seznam", True),
        ("a", "/robots.txt", "rfc9309", False),
        ("a", "/a", "draft1996", False),
        ("a", "/c", "draft1996", True),
        ("b", "/a", "draft1996", True),
        ("c", "/s", "draft1996", True),
    ],
)
def test_a24_a_verdict_that_unread_lines_could_change_is_partial(
    agent: str, path: str, dialect: str, partial: bool
) -> None:
    robots = RobotsTxt(LONG)
    verdict = robots.judge(DIALECTS[dialect], read_agent(agent), path)
    assert is_partial(robots, DIALECTS[dialect], verdict) is partial
    whole = RobotsTxt(LONG[:BODY_LIMIT])
    assert is_partial(whole, DIALECTS[dialect], whole.judge(DIALECTS[dialect], read_agent(agent), path)) is False


def test_a24_a_decision_without_a_file_is_never_partial() -> None:
    assert decided(Unavailable(404)).partial is False
    assert decided(Successful(200, LONG)).partial is True
    assert overridden(decided(Successful(200, LONG)), action="deny").partial is False


def test_evaluate_is_imported_without_what_does_io() -> None:
    # `socket` remains: email.utils, which reads the HTTP dates of cached responses, imports it.
    loaded = "import sys, app.decisions.evaluate; print(*sys.modules)"
    command = [sys.executable, "-c", loaded]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert "app.decisions.evaluate" in names
    packages = {name.partition(".")[0] for name in names}
    libraries = {"anyio", "asyncio", "cryptography", "fastapi", "httpx", "logging", "msgspec", "pydantic"}
    assert packages.isdisjoint(libraries | {"redis", "ssl", "starlette", "uvicorn"})
    services = {
        "app.api",
        "app.cache.robots_cache",
        "app.decisions.decider",
        "app.fetch",
        "app.store",
        "app.main.settings",
    }
    assert services.isdisjoint(names)
