"""`POST /v1/allowed` as one JSON object: the answers of GET, in order, each item on its own."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from starlette.types import Message, Scope

from app.api.answers.encoding import AnswerEncoder
from app.api.item_results import encode_result
from app.api.json_array import ARRAY_PIECE
from app.api.middleware.body_limit import REQUEST_BODY_LIMIT
from app.api.routes.batch import ITEMS
from app.decisions.decider import Decider
from app.decisions.evaluate import Decision, Question
from app.loop.background import cancel_and_wait
from robots_core.origin import Origin
from robots_core.robots.access import Busy
from tests.api.service import Service, running
from tests.origins import Exchange, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: ExampleBot\nDisallow: /private/\nCrawl-delay: 2\n\nUser-agent: *\nDisallow: /x\n"


async def answers_to(service: Service, items: list[Any], **members: object) -> list[dict[str, Any]]:
    response = await service.client.post("/v1/allowed", json={"items": items, **members})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    answers: list[dict[str, Any]] = response.json()["answers"]
    return answers


async def test_answers_are_those_of_get_in_the_order_of_the_items(store_url: str) -> None:
    async with serve(text(200, RULES)) as one, serve(text(404)) as other, running(store_url) as service:
        questions: list[dict[str, Any]] = [
            {"url": f"{one.url}/private/é?a=1", "agent": "ExampleBot/1.0"},
            {"url": f"{other.url}/private/", "agent": "ExampleBot"},
            {"url": f"{one.url}/x", "agent": ["NewBot", "OtherBot"], "dialect": "google"},
            {"url": f"{one.url}/robots.txt", "agent": "ExampleBot", "at": "2026-11-21T20:00:00Z"},
            {"url": f"{one.url}/private/", "agent": "ExampleBot", "dialect": "seznam", "max_age": 60, "wait": 3},
        ]
        cold, hot = await answers_to(service, questions), await answers_to(service, questions)
        assert {answer["robots"]["source"] for answer in cold} >= {"fetched"}
        assert [answer["robots"].pop("source") for answer in hot] == ["memory"] * len(hot)
        for answer in cold:
            del answer["robots"]["source"]
        assert hot == cold
        for question, answer in zip(questions, hot, strict=True):
            expected = (await service.client.get("/v1/allowed", params=question)).json()
            del expected["robots"]["source"]
            assert expected == answer


@pytest.mark.parametrize("max_age", [None, 0])
async def test_batch_fetches_an_origin_once(store_url: str, max_age: float | None) -> None:
    async with serve(text(200, RULES)) as one, serve(text(200, "")) as other, running(store_url) as service:
        items = [{"url": f"{origin.url}/{n}", "agent": f"Bot{n}"} for n in range(50) for origin in (one, other)]
        answers = await answers_to(service, items, max_age=max_age)
        assert [answer["url"] for answer in answers] == [item["url"] for item in items]
        assert (len(one.requests), len(other.requests)) == (1, 1)


BAD: list[tuple[Any, str, object]] = [
    ({"url": "ftp://h/", "agent": "a"}, "url", "ftp://h/"),
    ({"url": "http://h/\ud800", "agent": "a"}, "url", "http://h/\ud800"),
    ({"url": "http://h/", "agent": "()"}, "agent", "()"),
    ({"url": "http://h/", "agent": ["a", "()"]}, "agent", "()"),
    ({"url": "http://h/", "agent": []}, "agent", "[]"),
    ({"url": "http://h/", "agent": ["a"] * 17}, "agent", json.dumps(["a"] * 17)),
    ({"url": "http://h/", "agent": 5}, "agent", 5),
    ({"url": 5, "agent": "a"}, "url", 5),
    ({"agent": "a"}, "url", None),
    ({"url": "http://h/", "agent": "a", "dialect": "bing"}, "dialect", "bing"),
    ({"url": "http://h/", "agent": "a", "at": "now"}, "at", "now"),
    ({"url": "http://h/", "agent": "a", "wait": 61}, "wait", 61),
    ({"url": "http://h/", "agent": "a", "max_age": -1}, "max_age", -1),
    ({"url": "http://h/", "agent": "a", "explain": True}, "explain", True),
    ("http://h/", "item", "http://h/"),
    (None, "item", None),
]


async def test_a_bad_item_fails_alone(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        good = {"url": f"{origin.url}/private/", "agent": "ExampleBot"}
        body = json.dumps({"items": [thing for bad, _, _ in BAD for thing in (bad, good)]})
        headers = {"Content-Type": "application/json"}
        response = await service.client.post("/v1/allowed", content=body, headers=headers)
        answers = response.json()["answers"]
        assert [answer["verdict"] for answer in answers[1::2]] == ["disallow"] * len(BAD)
        for answer, (bad, parameter, value) in zip(answers[::2], BAD, strict=True):
            assert list(answer) == ["problem"], bad
            problem = answer["problem"]
            assert (problem["status"], problem["parameter"], problem["value"]) == (422, parameter, value)
            assert problem["type"].startswith("urn:robots-decisions:problem:bad-")
            assert "allowed" not in answer


def test_an_item_beyond_the_fetch_queue_says_when_to_retry() -> None:
    problem = json.loads(encode_result(Busy(7), AnswerEncoder().encode))["problem"]
    assert (problem["status"], problem["type"]) == (503, "urn:robots-decisions:problem:busy")
    assert problem["retry_after"] == 7


class FullAt:
    """A Decider with nothing in memory and a full fetch queue, which notes the turn of the loop of each question."""

    def __init__(self) -> None:
        self.turn = 0
        self.asked: list[int] = []
        self.files = self

    def memo(self) -> Any:
        return SimpleNamespace(now=0.0, files={})

    def get_if_fresh(self, _question: Question, _now: float, _memo: object) -> None:
        return None

    def count(self, _counts: object) -> None:
        pass

    def past(self, _origin: Origin) -> NoReturn:
        raise AssertionError("no question is about the past")

    async def decide(self, _question: Question, *, begun: bool) -> Decision:
        self.asked.append(self.turn)
        raise Busy(7)


async def test_many_origins_with_a_question_each_let_other_requests_run(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks, decider = count(), FullAt()

    async def others() -> None:
        while True:
            decider.turn += 1
            await asyncio.sleep(0)

    # Each look at the clock takes a millisecond, so that a few questions use up the budget.
    monkeypatch.setattr("app.loop.work_turns.time", SimpleNamespace(monotonic=lambda: next(ticks) / 1000))
    async with running(store_url) as service:
        state = service.app.state
        monkeypatch.setattr(state, "services", replace(state.services, decider=cast("Decider", decider)))
        running_others = asyncio.create_task(others())
        answers = await answers_to(service, [{"url": f"http://h{number}/", "agent": "a"} for number in range(ITEMS)])
        await cancel_and_wait([running_others])
    assert len(answers) == len(decider.asked) == ITEMS
    assert max(Counter(decider.asked).values()) < ITEMS / 2  # not all of them in one turn


async def test_batch_with_too_many_items_is_refused(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        item = {"url": f"{origin.url}/private/", "agent": "ExampleBot"}
        assert len(await answers_to(service, [item] * ITEMS)) == ITEMS
        response = await service.client.post("/v1/allowed", json={"items": [item] * (ITEMS + 1)})
        problem = response.json()
        assert (response.status_code, problem["parameter"], problem["value"]) == (422, "items", ITEMS + 1)
        assert str(ITEMS + 1) in problem["detail"]
        assert await answers_to(service, []) == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"items": {}}', 422),
        (b'{"items": [], "agent": "a"}', 422),
        (b'{"items": [], "wait": NaN}', 422),
        (b'{"items": [], "wait": 1e999}', 422),
        (b'{"items": [\xff]}', 422),
        (b'{"items": ' + b"[" * 60_000, 422),
        (b'{"items": ["' + b"a" * REQUEST_BODY_LIMIT + b'"]}', 413),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else None,
)
async def test_body_that_is_not_a_batch_is_refused(store_url: str, body: bytes, status: int) -> None:
    async with running(store_url) as service:
        response = await service.client.post("/v1/allowed", content=body, headers={"Content-Type": "application/json"})
        assert (response.status_code, response.json()["status"]) == (status, status)
        assert response.headers["content-type"] == "application/problem+json"


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


async def test_silent_origin_does_not_delay_items_that_do_not_wait(store_url: str) -> None:
    async with serve(stall) as dead, serve(text(200, RULES)) as alive, running(store_url) as service:
        await service.allowed(f"{alive.url}/")
        items = [{"url": f"{dead.url}/", "agent": "a"}, {"url": f"{alive.url}/x", "agent": "a"}]
        pending, answer = await answers_to(service, items, wait=0)
        assert (pending["verdict"], pending["reason"], answer["verdict"]) == ("defer", "pending", "disallow")


async def test_long_batch_answer_is_encoded_in_pieces(store_url: str) -> None:
    sitemaps = "".join(f"Sitemap: https://h.example/{n:0500}.xml\n" for n in range(800))
    async with serve(text(200, sitemaps)) as origin, running(store_url) as service:
        items = [{"url": f"{origin.url}/{n}", "agent": "a"} for n in range(100)]
        await answers_to(service, items[:1])
        for path, name in (("/v1/allowed", "answers"), ("/v1/permits/batch", "permits")):
            sent = await messages(service, json.dumps({"items": items}).encode(), path)
            bodies = [message["body"] for message in sent if message["type"] == "http.response.body"]
            assert len(bodies) > 10
            assert max(map(len, bodies)) < ARRAY_PIECE + 40_000
            answers = json.loads(b"".join(bodies))[name]
            assert [answer["url"] for answer in answers] == [item["url"] for item in items]
            assert all(len(answer["sitemaps"]) + answer["more_sitemaps"] == 800 for answer in answers)


async def messages(
    service: Service, body: bytes, path: str = "/v1/allowed", leaves: asyncio.Event | None = None
) -> list[Message]:
    """The messages that the application sends in response to that body; the client may disconnect (`leaves`)."""
    sent: list[Message] = []
    received = iter([{"type": "http.request", "body": body}])

    async def receive() -> Message:
        for message in received:
            return message
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    length = str(len(body)).encode()
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", length)]
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }
    await service.app(scope, receive, send)
    return sent


@pytest.mark.parametrize("path", ["/v1/allowed", "/v1/permits/batch"])
async def test_batch_stops_when_its_client_disconnects(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        questions: list[Question] = []
        leaves = asyncio.Event()

        async def ask(question: Question, *, begun: bool) -> Decision:
            assert begun
            questions.append(question)
            leaves.set()
            for _ in range(10):
                await asyncio.sleep(0)
            raise Busy(7)

        service.app.state.services.decider.decide = ask
        items = [{"url": f"http://h{n % 10}.example/{n}", "agent": "a"} for n in range(ITEMS)]
        await messages(service, json.dumps({"items": items}).encode(), path, leaves)
        assert 0 < len(questions) <= 2 * 10  # of 10 origins, each has asked its second question at most


async def test_decisions_of_a_batch_are_counted_one_by_one(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await answers_to(service, [{"url": f"{origin.url}/{n}", "agent": "a"} for n in range(30)])
        counted = (await service.client.get("/metrics")).text
        line = 'robots_decisions_total{dialect="rfc9309",reason="no_match",source="%s",verdict="allow"} %s.0'
        assert line % ("fetched", 1) in counted
        assert line % ("memory", 29) in counted
        assert 'robots_requests_total{method="POST",route="/v1/allowed",status="2xx"} 1.0' in counted
