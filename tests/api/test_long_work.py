"""Long work shares the event loop, is charged and bounded, and stops when its client disconnects."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Scope

from app.api.long_work import AT_ONCE, AT_ONCE_PER_CALLER, SECONDS_PER_REQUEST, SLICE, Allowance, LongWork, Work
from app.api.problems import Problem
from app.auth.keys import Limit
from app.auth.quotas import QuotaAccount
from app.helper.helpers import Helpers
from app.work_turns import WorkTurns
from tests.doubles import Clock


class WorkClock(Clock):
    """A clock that the steps of long work advance."""

    def steps(self, count: int, *, each: float = SLICE, piece: str = "x", made: list[int] | None = None) -> Work:
        """Work with so many steps, which records those that were made."""

        def work(_allowance: Allowance) -> Iterator[str]:
            for number in range(count):
                self.now += each * 1.01
                if made is not None:
                    made.append(number)
                yield piece

        return work


class Client:
    """The client side of one request."""

    def __init__(self, host: str = "192.0.2.1", state: dict[str, Any] | None = None) -> None:
        self.scope: Scope = {"type": "http", "client": (host, 1), "state": state or {}}
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.sent.append(message)

    async def ask(self, long_work: LongWork, work: Work) -> None:
        await long_work.answer(work)(self.scope, self.receive, self.send)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def length(self) -> bytes | None:
        return dict(self.sent[0]["headers"]).get(b"content-length")


async def turns_of_the_loop(over: Callable[[], bool]) -> int:
    """The number of iterations of the event loop until then."""
    turns = 0
    while not over():
        turns += 1
        await asyncio.sleep(0)
    return turns


async def test_event_loop_runs_after_every_slice() -> None:
    clock = WorkClock(0.0)
    long_work = LongWork(WorkTurns(), Helpers(), clock)
    clients = [Client(f"192.0.2.{number}") for number in range(5)]
    work = asyncio.gather(*(client.ask(long_work, clock.steps(20)) for client in clients))
    assert await turns_of_the_loop(work.done) >= 5 * 20
    assert [client.body for client in clients] == [b"x" * 20] * 5


async def test_long_requests_alternate() -> None:
    clock = WorkClock(0.0)
    long_work = LongWork(WorkTurns(), Helpers(), clock)
    made: list[list[int]] = [[], []]
    long, short = (clock.steps(count, made=one) for count, one in zip((100, 5), made, strict=True))
    first = asyncio.create_task(Client("192.0.2.1").ask(long_work, long))
    await asyncio.sleep(0)
    await Client("192.0.2.2").ask(long_work, short)
    assert len(made[1]) == 5
    assert len(made[0]) < 15
    await first


async def test_short_answer_has_a_content_length() -> None:
    clock, client = WorkClock(0.0), Client()
    await client.ask(LongWork(WorkTurns(), Helpers(), clock), clock.steps(10, each=SLICE / 100))
    assert (client.length, client.body, len(client.sent)) == (b"10", b"x" * 10, 2)


async def test_long_answer_is_streamed() -> None:
    clock, client = WorkClock(0.0), Client()
    await client.ask(LongWork(WorkTurns(), Helpers(), clock), clock.steps(10, each=0, piece="y" * 50_000))
    assert client.length is None
    assert client.body == b"y" * 500_000
    assert max(len(message.get("body", b"")) for message in client.sent) <= 150_000


async def test_work_pauses_while_the_client_does_not_read() -> None:
    clock, client = WorkClock(0.0), Client()
    made: list[int] = []
    client.reads.clear()
    task = asyncio.create_task(client.ask(LongWork(WorkTurns(), Helpers(), clock), clock.steps(100, made=made)))
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(made) == 1
    client.reads.set()
    await task
    assert len(made) == 100


@pytest.mark.parametrize("piece", ["x", ""], ids=["while it answers", "before it answers"])
async def test_work_stops_when_the_client_disconnects(piece: str) -> None:
    clock, client = WorkClock(0.0), Client()
    made: list[int] = []
    task = asyncio.create_task(
        client.ask(LongWork(WorkTurns(), Helpers(), clock), clock.steps(10_000, made=made, piece=piece))
    )
    await turns_of_the_loop(lambda: len(made) == 10)
    client.gone.set()
    await task
    assert len(made) < 20


async def test_a_problem_before_the_first_piece_is_the_answer() -> None:
    def work(_allowance: Allowance) -> Iterator[str]:
        yield ""
        raise Problem(422, "bad-url", "It is not a URL.")

    client = Client()
    with pytest.raises(Problem):
        await client.ask(LongWork(WorkTurns(), Helpers(), WorkClock(0.0)), work)
    assert client.sent == []


async def test_work_sees_that_its_allowance_is_spent() -> None:
    clock = WorkClock(0.0)

    def work(allowance: Allowance) -> Iterator[str]:
        while not allowance.is_spent():
            clock.now += 1.0
            yield "x"

    client = Client()
    await client.ask(LongWork(WorkTurns(), Helpers(), clock), work)
    assert client.body == b"x" * 5


async def test_work_is_charged_by_cpu_time() -> None:
    debts: list[float] = []
    quotas = SimpleNamespace(add_debt=lambda _id, seconds: debts.append(seconds))
    account = QuotaAccount(quotas, "crawler", Limit(10, 60, 10))  # type: ignore[arg-type]
    clock = WorkClock(0.0)
    long_work = LongWork(WorkTurns(), Helpers(), clock)
    await Client(state={"quota_account": account}).ask(long_work, clock.steps(1, each=SECONDS_PER_REQUEST / 2))
    assert debts == []
    await Client(state={"quota_account": account}).ask(long_work, clock.steps(5, each=SECONDS_PER_REQUEST))
    assert debts == [6.0] * 5


async def test_one_caller_cannot_take_all_long_requests() -> None:
    clock = WorkClock(0.0)
    long_work = LongWork(WorkTurns(), Helpers(), clock)
    stuck = [Client(f"192.0.2.{number // AT_ONCE_PER_CALLER}") for number in range(AT_ONCE - 1)]
    tasks = []
    for client in stuck:
        client.reads.clear()
        tasks.append(asyncio.create_task(client.ask(long_work, clock.steps(1))))
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="long requests are running") as raised:
        await Client("192.0.2.0").ask(long_work, clock.steps(1))
    assert (raised.value.status_code, raised.value.slug) == (503, "overloaded")
    other = Client("198.51.100.1")
    await other.ask(long_work, clock.steps(1))
    assert other.body == b"x"
    for client in stuck:
        client.reads.set()
    await asyncio.gather(*tasks)
    await Client("192.0.2.0").ask(long_work, clock.steps(1))


class CacheResult:
    """Work for the thread that waits until a test lets it go on."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.may_end.wait(30)
        return "done"


def request_of(client: Client) -> Request:
    return Request(client.scope, client.receive)


async def test_thread_runs_one_job_at_a_time_and_drops_cancelled_ones() -> None:
    long_work = LongWork(WorkTurns(), Helpers())
    first, second, third = CacheResult(), CacheResult(), CacheResult()
    third.may_end.set()
    left = Client()
    one, two, three = (
        asyncio.create_task(long_work.in_thread(request_of(client), work))
        for client, work in ((Client(), first), (left, second), (Client(), third))
    )
    assert await asyncio.to_thread(first.begun.wait, 30)
    left.gone.set()
    with pytest.raises(ClientDisconnect):
        await two
    first.may_end.set()
    assert (await one, await three) == ("done", "done")
    assert not second.begun.is_set()
    await long_work.aclose()


async def test_work_in_the_thread_is_charged_and_raises_its_errors() -> None:
    debts: list[float] = []
    quotas = SimpleNamespace(add_debt=lambda _id, seconds: debts.append(seconds))
    account = QuotaAccount(quotas, "crawler", Limit(10, 60, 10))  # type: ignore[arg-type]
    clock = WorkClock(0.0)
    long_work = LongWork(WorkTurns(), Helpers(), clock)

    def work() -> str:
        clock.now += 10.5 * SECONDS_PER_REQUEST
        return "done"

    def failing() -> str:
        raise Problem(404, "no-version", "There is none.")

    request = request_of(Client(state={"quota_account": account}))
    assert await long_work.in_thread(request, work) == "done"
    assert debts == [10 * 6.0]
    with pytest.raises(Problem):
        await long_work.in_thread(request, failing)
    await long_work.aclose()
