"""The next change of the rate: the first minute with another interval, by every minute of the days that follow."""

from datetime import UTC, datetime, timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.cache.result import CacheResult, Source
from app.decisions.evaluate import Decision, Question
from app.overrides.table import Matching, Override
from robots_core.origin import read_target
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUESTION = Question(read_target("https://www.example.com/"), read_agent("ExampleBot"), DIALECTS["rfc9309"])

hours = st.integers(0, 23).map(lambda hour: f"{hour:02}00")
lines = st.builds("Request-rate: 1/{} {}-{}\n".format, st.sampled_from([5, 15]), hours, hours)


def decided(body: str, at: datetime, delay: Override | None) -> Decision:
    """The decision at an instant, by the text and an operators' delay."""
    question = QUESTION._replace(at=at)
    overrides = None if delay is None else Matching(None, delay, None, None)
    robots = RobotsTxt(body.encode())
    verdict = robots.judge(question.dialect, question.agent, "/")
    result = CacheResult(None, None, Source.MEMORY)
    return Decision(question, verdict, result, robots, at.timestamp(), overrides=overrides)


def interval(body: str, at: datetime, delay: Override | None) -> float | None:
    rate = decided(body, at, delay).rate
    return None if rate is None or rate.value is None else rate.value.interval


@example(["Request-rate: 1/15\n", "Request-rate: 1/15 2300-1859\n"], 690, None)
@example(["Request-rate: 1/5 1000-1100\n"], 0, 70)
@settings(deadline=None, max_examples=50)
@given(st.lists(lines, max_size=3), st.integers(0, 1439), st.none() | st.integers(1, 70))
def test_it_is_the_first_minute_with_another_interval(written: list[str], minute: int, expires: int | None) -> None:
    body, at = "User-agent: *\n" + "".join(written), NOON + timedelta(minutes=minute)
    delay = None
    if expires is not None:
        ends = (NOON + timedelta(hours=expires)).timestamp()
        delay = Override("a", "www.example.com", (), "delay", "", ends, shadow=False, delay=20.0)
        if delay.expired(at.timestamp()):
            delay = None
    now = interval(body, at, delay)
    days = (at + timedelta(minutes=later) for later in range(1, 4 * 1440, 1))
    expected = next((then for then in days if then.minute == 0 and interval(body, then, delay) != now), None)
    found = decided(body, at, delay).next_rate
    assert (None if found is None else found.at) == expected
    if found is not None:
        assert (None if found.rate is None else found.rate.interval) == interval(body, found.at, delay)
