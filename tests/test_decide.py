"""Decisions that take long: others have theirs meanwhile."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from threading import Event, main_thread
from threading import current_thread as this_thread

import pytest

from app.decide import Decider, Question
from app.origin import read_target
from app.robots.agents import read_agent
from app.robots.dialect import LARGE, Decision, Dialect
from app.robots.document import Group
from app.robots.matcher import HEAVY, Ruleset
from app.robots.rfc9309 import RFC9309
from tests.api.service import Service, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

SECONDS = 20.0
"""How long a thread waits for its turn before the test has failed."""


class Slow:
    """A dialect whose rules are compiled, and whose paths are read, only when somebody lets them be."""

    def __init__(self, *, compiling: bool = False, judging: bool = False) -> None:
        self._compiling, self._judging = compiling, judging
        self.begun, self.go_on = Event(), Event()
        self.dialect: Dialect = replace(RFC9309, name="slow", compile=self._compile)

    def _wait(self) -> None:
        self.begun.set()
        assert this_thread() is not main_thread(), "the event loop was kept waiting"
        assert self.go_on.wait(SECONDS), "nobody had a turn meanwhile"

    def _compile(self, groups: Sequence[Group]) -> Ruleset:
        if self._compiling:
            self._wait()
        rules = RFC9309.compile(groups)
        subject = rules.subject

        def waiting(path: str) -> str:
            if self._judging:
                self._wait()
            return subject(path)

        rules.subject = waiting
        rules.heavy = self._judging
        return rules


def question(url: str, dialect: Dialect) -> Question:
    return Question(read_target(url), read_agent("ExampleBot"), dialect)


def rules(length: int) -> str:
    lines = ["User-agent: *", "Disallow: /private"]
    return "\n".join(lines + [f"Allow: /{line:06}*{line:080}" for line in range(length // 80)])


async def begun(slow: Slow) -> None:
    """Wait until it is under way."""
    for _ in range(int(SECONDS * 100)):
        if slow.begun.is_set():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it was never begun")


async def answer_others(service: Service, slow: Slow, url: str, other_url: str) -> None:
    """Ask what is slow; while that is under way, ask something else, and only then let it go on."""
    decider: Decider = service.app.state.decider
    await service.allowed(url)
    asked = question(f"{url}/private/x", slow.dialect)
    assert decider.answer_now(asked) is None
    assert decider.ask_now(asked) is None
    task = asyncio.create_task(decider.ask(asked))
    await begun(slow)
    assert (await service.allowed(f"{other_url}/x"))["allowed"] is False
    assert not task.done()
    slow.go_on.set()
    answer = await task
    assert answer.verdict.decision is Decision.DISALLOW
    assert answer.edition is not None


async def test_others_are_answered_while_the_rules_of_a_large_file_are_compiled(store_url: str) -> None:
    slow = Slow(compiling=True)
    other = text(200, "User-agent: *\nDisallow: /")
    async with serve(text(200, rules(LARGE))) as one, serve(other) as two, running(store_url) as service:
        await answer_others(service, slow, one.url, two.url)
        # The file is not heavy: once compiled, it is asked without a thread.
        decider: Decider = service.app.state.decider
        assert decider.answer_now(question(f"{one.url}/private/y", slow.dialect)) is not None


async def test_others_are_answered_while_heavy_rules_decide(store_url: str) -> None:
    slow = Slow(judging=True)
    other = text(200, "User-agent: *\nDisallow: /")
    async with serve(text(200, rules(HEAVY))) as one, serve(other) as two, running(store_url) as service:
        await answer_others(service, slow, one.url, two.url)
        decider: Decider = service.app.state.decider
        assert decider.answer_now(question(f"{one.url}/private/y", slow.dialect)) is None


async def test_a_batch_has_the_answers_of_heavy_rules_in_their_places(store_url: str) -> None:
    other = text(200, "User-agent: *\nDisallow: /")
    async with serve(text(200, rules(HEAVY))) as one, serve(other) as two, running(store_url) as service:
        items = [{"url": f"{origin.url}/{path}", "agent": "ExampleBot"} for path in "ab" for origin in (one, two)]
        for _ in range(2):
            response = await service.client.post("/v1/allowed", json={"items": items})
            answers = response.json()["answers"]
            assert [answer["url"] for answer in answers] == [item["url"] for item in items]
            assert [answer["allowed"] for answer in answers] == [True, False] * 2
