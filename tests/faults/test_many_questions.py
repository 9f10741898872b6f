"""What a request with many questions holds while it waits, and what happens when one of them fails."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from app.api.stream import LINES
from app.decisions.evaluate import CachedFile, Decision, Question, evaluate
from app.decisions.parsed_files import SHORT
from app.loop.background import cancel_and_wait
from robots_core.robots.robots_txt import RobotsTxt
from tests.api.service import Service, running
from tests.exposition import samples
from tests.faults.loopback import Visit, web
from tests.faults.many import WAYS, Answers, Items
from tests.faults.until import until
from tests.origins import text

Way = Callable[[Service, Items], Awaitable[Answers]]

MEMORY = 4 * 1024 * 1024
FILES = 60
LARGE = (
    "".join(f"User-agent: {number}\nDisallow: /private/\n" for number in range(1500)) + "User-agent: a\nDisallow: /\n"
)


def parsed_bytes() -> int:
    """Of all parsed files in this process."""
    return sum(it.size for it in gc.get_objects() if isinstance(it, RobotsTxt))


async def decisions(service: Service) -> float:
    counted = samples((await service.client.get("/metrics")).text)
    return sum(value for (name, _), value in counted.items() if name == "robots_decisions_total")


@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__)
async def test_answered_questions_hold_no_file(store_url: str, store_client: Redis, ask: Way) -> None:
    over = asyncio.Event()

    async def silence(visit: Visit) -> None:
        await over.wait()
        await visit.send(text(404))

    before = parsed_bytes()
    assert RobotsTxt(LARGE.encode()).size * FILES > 5 * MEMORY
    async with (
        web(text(200, LARGE)) as origins,
        running(store_url, fetch_timeout=100.0, memory_bytes=MEMORY) as service,
    ):
        dead = origins.new(silence)
        items = [{"url": f"{origins.new()}/private/", "agent": "a", "wait": 60} for _ in range(FILES)]
        asking = asyncio.ensure_future(ask(service, [{"url": dead, "agent": "a", "wait": 60}, *items]))
        await until(lambda: decisions(service), lambda found: found == FILES)
        # The files are at most those that memory may hold, and one that is being decided on.
        assert parsed_bytes() - before <= MEMORY
        over.set()
        answers = await asking
        assert [answer["verdict"] for answer in answers] == ["allow"] + ["disallow"] * FILES


@pytest.mark.parametrize("leaves", [False, True], ids=["stays", "leaves"])
@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__)
async def test_the_bytes_of_waiting_answers_are_bounded(
    store_url: str, store_client: Redis, monkeypatch: pytest.MonkeyPatch, ask: Way, leaves: bool
) -> None:
    over = asyncio.Event()

    async def silence(visit: Visit) -> None:
        await over.wait()
        await visit.send(text(404))

    monkeypatch.setattr("app.api.middleware.answer_room.HELD_BYTES", 30_000)
    async with web(text(200, "User-agent: *\nDisallow: /private/\n")) as origins, running(store_url) as service:
        dead, live = origins.new(silence), origins.new()
        items = [{"url": f"{live}/private/{number}", "agent": "a"} for number in range(100)]
        asking = asyncio.ensure_future(ask(service, [{"url": dead, "agent": "a", "wait": 60}, *items]))
        await until(lambda: decisions(service), lambda found: found == len(items))
        if leaves:
            await cancel_and_wait([asking])
        else:
            over.set()
            answers = await asking
            answered = [answer for answer in answers if "problem" not in answer]
            assert 10 < len(answered) < 60
            refused = [answer["problem"] for answer in answers if "problem" in answer]
            assert {(it["status"], it["retry_after"]) for it in refused} == {(503, 1)}
            assert "Too many answers wait to be sent" in refused[0]["detail"]
        again = await ask(service, items[:20])  # what was held is released
        assert [answer.get("verdict") for answer in again] == ["disallow"] * 20


async def one_by_one(service: Service, items: Items) -> Answers:
    """As many requests as questions, at once."""
    answers = [service.allowed(item["url"], item["agent"], wait=60) for item in items]
    return list(await asyncio.gather(*answers))


@pytest.mark.parametrize("ask", [*WAYS, one_by_one], ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("fetched", [False, True], ids=["cold", "fetched"])
async def test_large_files_are_read_in_turns_of_their_own(
    store_url: str, store_client: Redis, monkeypatch: pytest.MonkeyPatch, ask: Way, fetched: bool
) -> None:
    turn = 0
    turns: list[int] = []

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    def noted(question: Question, file: CachedFile, now: float, *, forbidden: bool) -> Decision:
        turns.append(turn)
        return evaluate(question, file, now, forbidden=forbidden)

    body = LARGE.encode()
    assert len(body) > SHORT
    over = asyncio.Event()

    async def together(visit: Visit) -> None:
        if sum(origins.requests.values()) == FILES:
            over.set()
        await over.wait()
        await visit.send(text(200, body))

    async with web(together) as origins, running(store_url, fetch_timeout=100.0, memory_bytes=MEMORY) as service:
        items = [{"url": f"{origins.new()}/private/", "agent": "a", "wait": 60} for _ in range(FILES)]
        if fetched:  # a bundle reads files into memory without parsing them
            lines = "".join(f'{{"url": "{item["url"]}", "fetch": true, "wait": 60}}\n' for item in items)
            rows = await service.client.post("/v1/bundle", content=lines, headers={"Content-Type": LINES})
            assert rows.text.count('"outcome":"200"') == FILES
        monkeypatch.setattr("app.decisions.steps.evaluate", noted)
        counting = asyncio.create_task(count_turns())
        answers = await ask(service, items)
        await cancel_and_wait([counting])
    assert [answer["verdict"] for answer in answers] == ["disallow"] * FILES
    assert len(turns) == len(set(turns)) == FILES


@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("hot", [False, True], ids=["cold", "hot"])
async def test_a_question_that_fails_fails_alone(
    store_url: str,
    store_client: Redis,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ask: Way,
    hot: bool,
) -> None:
    def fail(question: Question, file: CachedFile, now: float, *, forbidden: bool) -> Decision:
        if question.target.path == "/fails":
            raise KeyError("planted")
        return evaluate(question, file, now, forbidden=forbidden)

    async with web(text(200, "User-agent: *\nDisallow: /private/\n")) as origins, running(store_url) as service:
        one, two = origins.new(), origins.new()
        if hot:
            await service.allowed(one)
        monkeypatch.setattr("app.decisions.steps.evaluate", fail)
        paths = [f"{one}/private/", f"{one}/fails", f"{one}/private/x", f"{two}/fails", f"{two}/private/"]
        with caplog.at_level(logging.ERROR, "app.decisions.answer_all"):
            answers = await ask(service, [{"url": url, "agent": "a"} for url in paths])
    assert [answer.get("verdict") for answer in answers] == ["disallow", None, "disallow", None, "disallow"]
    for failed in (answers[1]["problem"], answers[3]["problem"]):
        assert (failed["status"], failed["type"]) == (500, "urn:robots-decisions:problem:internal-server-error")
        assert failed["request_id"]
    logged = [record for record in caplog.records if record.name == "app.decisions.answer_all"]
    assert [str(record.exc_info[1]) for record in logged if record.exc_info] == ["'planted'"] * 2
