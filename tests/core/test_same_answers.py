"""The library and the service decide alike; tests/bulk compares the library with Arrow batches."""

import pytest

from app.cache.freshness import Freshness, Snapshot, State
from app.cache.result import CacheResult, Source
from app.decisions.evaluate import CachedFile, Question, evaluate, judge_policy
from robots_core.origin import BadUrl, read_target
from robots_core.outcomes import read_outcome
from robots_core.purposes.policy import PURPOSES, PurposePolicy
from robots_core.robots.access import Successful, readable_part
from robots_core.robots.agents import BadAgent, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.lines import readable
from robots_core.robots.robots_txt import RobotsTxt
from tests.core.library import AT, Row, answers
from tests.core.questions import Asked, files, host, questions

FILES = 400
ASKED = 6_000
SEED = 20_261_124


def cached(file: bytes | str) -> CachedFile:
    access = read_outcome(file) if isinstance(file, str) else Successful(200, readable_part(file))
    robots = RobotsTxt(access.body) if isinstance(access, Successful) else None
    now = AT.timestamp()
    return CachedFile(
        CacheResult(Snapshot(access, now), Freshness(now, State.FRESH, 0.0, stale=False), Source.MEMORY), robots
    )


def service_row(
    by_origin: dict[str, CachedFile], asked: Asked, dialect: str | None, policy: PurposePolicy | None
) -> Row:
    try:
        target = read_target(asked.url)
        agent = read_agent(asked.agent)
    except BadUrl:
        return (None, "bad_url", None, None, None)
    except BadAgent:
        return (None, "bad_agent", None, None, None)
    file = by_origin.get(target.origin.key)
    if file is None:
        return ("defer", "unknown_origin", None, None, None)
    question = Question(target, agent, DIALECTS[dialect or agent.dialect], AT, policy=policy)
    decision = evaluate(question, file, AT.timestamp(), forbidden=False)
    if policy is not None:
        decision = judge_policy(decision, policy)
    verdict, rate = decision.verdict, decision.rate
    interval = None if rate is None or rate.value is None else rate.value.interval
    if verdict.rule is None:
        return (verdict.permission.value, verdict.reason.value, None, None, interval)
    line, key, value = verdict.rule.directive
    return (verdict.permission.value, verdict.reason.value, f"{key}: {readable(value)}", line, interval)


@pytest.mark.parametrize("purpose", [(), PURPOSES], ids=["", "purposes"])
@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_library_answers_as_the_service_does(dialect: str | None, purpose: tuple[str, ...]) -> None:
    bodies = files(SEED, FILES)
    policy = PurposePolicy(PURPOSES, enforce=True) if purpose else None
    by_origin = {f"https://{host(number)}": cached(file) for number, file in enumerate(bodies)}
    asked = list(questions(SEED, bodies, ASKED // (1 if dialect is None else 2)))
    found = answers(bodies, asked, dialect, purpose)
    assert len({row[1] for row in found}) > 10
    for question, row in zip(asked, found, strict=True):
        assert row == service_row(by_origin, question, dialect, policy), question
