"""The plain clients, asynchronous and not, with a real service, and with one that misbehaves."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from robots_decisions import (
    AsyncClient,
    Client,
    Deferred,
    Disallowed,
    NotUnderstood,
    Question,
    ServiceUnavailable,
    Unanswered,
    Verdict,
)
from robots_decisions.aiohttp import AiohttpHttp
from robots_decisions.httpx import AsyncHttpxHttp, HttpxHttp
from robots_decisions.httpx2 import AsyncHttpx2Http, Httpx2Http
from robots_decisions.question import asking
from robots_decisions.requests import RequestsHttp
from robots_decisions.verdicts import BATCH_ITEMS, verdict_path

from tests.clients.permitting import Permitting, allow, defer, disallow
from tests.clients.site import HTML, Site, new_address
from tests.origins import Exchange, serve, text

ROBOTS = "User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n"

over_every_library = pytest.mark.parametrize(
    "http", [AsyncHttpxHttp, AsyncHttpx2Http, AiohttpHttp, HttpxHttp, Httpx2Http], ids=lambda http: http.__name__
)


class InThread:
    """The synchronous client with the methods of the asynchronous one, each call in a thread."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __aenter__(self) -> "InThread":
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._client.__exit__, *error)

    async def allowed(self, *arguments: Any) -> Verdict:
        return await asyncio.to_thread(self._client.allowed, *arguments)

    async def batch(self, asked: Any) -> AsyncIterator[Verdict | Unanswered]:
        for answer in await asyncio.to_thread(lambda: list(self._client.batch(asked))):
            yield answer


def client_of(http: Any, url: str, **settings: Any) -> Any:
    waits = http in {HttpxHttp, Httpx2Http}
    return InThread(Client(url, http=http(), **settings)) if waits else AsyncClient(url, http=http(), **settings)


@over_every_library
async def test_allowed_and_batch_give_verdicts(http: Any, service_url: str) -> None:
    async with (
        serve(Site(ROBOTS), host=new_address()) as origin,
        serve(text(404), host=new_address()) as other,
        client_of(http, service_url, agent="ExampleBot") as client,
    ):
        allowed = await client.allowed(f"{origin.url}/page?a=b%20c&d=ä")
        assert allowed
        assert (allowed.verdict, allowed.reason, allowed.interval) == ("allow", "no_match", 7.0)
        refused = await client.allowed(f"{origin.url}/private/page", "OtherBot/1.0")
        assert not refused
        assert (refused.reason, refused.rule, refused.line) == ("rule", "disallow: /private/", 2)
        assert refused.members["robots"]["status"] == 200
        with pytest.raises(NotUnderstood, match="use http or https"):
            await client.allowed("ftp://host/")
        questions = [f"{origin.url}/{number}" for number in range(BATCH_ITEMS)]
        more = [(f"{origin.url}/private/", "A"), "no URL", f"{other.url}/private/"]
        answers = [answer async for answer in client.batch([*questions, *more])]
    assert all(answers[:BATCH_ITEMS])
    assert [answer.url for answer in answers] == [*questions, more[0][0], *more[1:]]
    private, malformed, elsewhere = answers[BATCH_ITEMS:]
    assert isinstance(private, Verdict)
    assert (private.verdict, private.agent) == ("disallow", "A")
    assert isinstance(malformed, Unanswered)
    assert (malformed.status, bool(malformed)) == (422, False)
    assert "no URL" in malformed.why
    assert elsewhere


async def test_question_of_a_batch_has_parameters_of_its_own(service_url: str) -> None:
    async with (
        serve(Site("User-agent: OneBot\nDisallow: /*.pdf\n"), host=new_address()) as origin,
        AsyncClient(service_url, agent="OneBot") as client,
    ):
        url = f"{origin.url}/a.pdf"
        each = [Question(url), Question(url, dialect="draft1996"), Question(url, ["OtherBot", "OneBot"])]
        past = Question(url, as_of="2001-01-01T00:00:00Z")
        *answers, unknown = [answer async for answer in client.batch([*each, past])]
        [few] = [answer async for answer in client.batch([url], fields=["dialect"])]
        assert [answer async for answer in client.batch([url], fields="dialect")] == [few]
    assert [bool(answer) for answer in answers] == [False, True, False]
    assert [answer.agent for answer in answers] == ["OneBot", "OneBot", "OtherBot"]
    assert isinstance(unknown, Unanswered)
    assert unknown.status == 404
    assert isinstance(few, Verdict)
    assert (few.rule, few.line, few.members["dialect"]) == ("disallow: /*.pdf", 2, "rfc9309")
    assert "robots" not in few.members


@pytest.mark.parametrize("name", ["batch", "bundle"])
async def test_one_url_in_place_of_several_is_refused(name: str) -> None:
    async with AsyncClient("http://127.0.0.1:9", agent="A") as client:
        with pytest.raises(TypeError, match="'http://h/' is one text: pass a list of them"):
            [answer async for answer in getattr(client, name)("http://h/")]
    with Client("http://127.0.0.1:9", agent="A") as client, pytest.raises(TypeError, match="is one text"):
        list(getattr(client, name)("http://h/"))


def test_a_query_has_seconds_as_they_were_given() -> None:
    given = asking(agent="A", max_age=1_234_567.5)
    assert "max_age=1234567.5&wait=10" in verdict_path("http://h/", given, 60.0)


async def test_batch_of_an_endless_iterator_begins_at_once(service_url: str) -> None:
    asked = 0

    async def urls() -> AsyncIterator[str]:
        nonlocal asked
        while True:
            asked += 1
            yield f"{origin.url}/{asked}"

    async with (
        serve(Site(ROBOTS), host=new_address()) as origin,
        AsyncClient(service_url, agent="ExampleBot") as client,
    ):
        answers = client.batch(urls())
        first = await anext(answers)
        await answers.aclose()
    assert (bool(first), asked) == (True, BATCH_ITEMS)


async def test_permit_keeps_the_pace_and_reports_the_page(service_url: str) -> None:
    site = Site("User-agent: *\nDisallow: /private/\nCrawl-delay: 0.3\n", {"/busy": [text(503, "busy", HTML)]})
    async with serve(site, host=new_address()) as origin, AsyncClient(service_url, agent="ExampleBot") as client:
        begun: list[float] = []
        for number in range(3):
            async with client.permit(f"{origin.url}/{number}") as permit:
                begun.append(time.time())
                permit.report(200)
            assert (permit.granted, permit.backoff) == (True, None)
        assert begun[2] - begun[0] > 2 * 0.3 - 0.05
        with pytest.raises(Disallowed) as disallowed:
            async with client.permit(f"{origin.url}/private/"):
                raise AssertionError("no permit was given")
        assert disallowed.value.line == 2
        async with client.permit(f"{origin.url}/busy") as permit:
            permit.report(503, "600")
        assert permit.backoff is not None
        assert permit.backoff > 60
        with pytest.raises(Deferred) as deferred:
            async with client.permit(f"{origin.url}/page", max_wait=1):
                raise AssertionError("no permit was given")
        assert deferred.value.seconds > 60
    assert site.paths == ["/robots.txt"]


@pytest.fixture
def unused() -> Iterator[Permitting]:
    """A service whose permits are checked for their release at the end."""
    permitting = Permitting(allow(permit="unused"))
    yield permitting
    assert permitting.reports == [("unused", {"released": True})]


async def test_released_permit_is_released(unused: Permitting) -> None:
    async with (
        serve(unused) as service,
        AsyncClient(service.url) as client,
        client.permit("http://h/", "A") as permit,
    ):
        permit.release()


async def test_released_permit_is_released_by_the_synchronous_client(unused: Permitting) -> None:
    def run(url: str) -> None:
        with Client(url) as client, client.permit("http://h/", "A") as permit:
            permit.release()

    async with serve(unused) as service:
        await asyncio.to_thread(run, service.url)


async def test_failing_page_keeps_its_slot_and_its_error() -> None:
    permitting = Permitting(allow())
    async with serve(permitting) as service, AsyncClient(service.url) as client:
        with pytest.raises(ConnectionRefusedError):
            async with client.permit("http://h/", "A"):
                raise ConnectionRefusedError
    assert permitting.reports == []


async def test_deferred_page_is_asked_about_again() -> None:
    permitting = Permitting(defer("2026-11-21T18:30:01Z"), allow())
    async with (
        serve(permitting) as service,
        AsyncClient(service.url) as client,
        client.permit("http://h/", "A") as permit,
    ):
        assert permit.granted
    assert len(permitting.asked) == 2


async def test_unreachable_allow_gives_a_permit_that_was_not_granted() -> None:
    async with serve(text(500)) as service, AsyncClient(service.url, unreachable="allow") as client:
        async with client.permit("http://h/", "A") as permit:
            permit.report(503)
        assert not permit.granted
        with pytest.raises(ServiceUnavailable, match="500"):
            await client.allowed("http://h/", "A")
    async with serve(Permitting(disallow())) as service, AsyncClient(service.url, unreachable="allow") as client:
        with pytest.raises(Disallowed):
            async with client.permit("http://h/", "A"):
                raise AssertionError("no permit was given")


async def test_question_without_an_agent_is_an_error() -> None:
    async with AsyncClient("http://127.0.0.1:9") as client:
        with pytest.raises(ValueError, match="no agent"):
            await client.allowed("http://h/")


def test_trio_is_refused_by_a_sentence() -> None:
    client = AsyncClient("http://127.0.0.1:9", agent="A")
    steps = client.allowed("http://h/")
    with pytest.raises(RuntimeError, match="need asyncio: under trio, use the synchronous ones in threads"):
        steps.send(None)  # as any loop that is not asyncio's


class SlowOutcomes(Permitting):
    """Takes outcomes that were collected, and lets the test know before it answers."""

    def __init__(self) -> None:
        super().__init__(allow())
        self.came, self.go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.path == "/v1/permits/outcomes":
            self.came.set()
            await self.go_on.wait()
        await super().__call__(exchange)


@pytest.mark.parametrize("http", [HttpxHttp, Httpx2Http, RequestsHttp], ids=lambda http: http.__name__)
async def test_outcomes_that_are_being_sent_arrive_before_the_client_is_closed(
    http: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robots_decisions.outcomes.DELAY", 0.01)
    slow = SlowOutcomes()

    def fetch(client: Client) -> None:
        with client.permit("http://h/", "A") as permit:
            permit.report(200)

    async with serve(slow) as service:
        client = Client(service.url, http=http())
        await asyncio.to_thread(fetch, client)
        await slow.came.wait()
        closing = asyncio.create_task(asyncio.to_thread(client.close))
        await asyncio.sleep(0.1)
        assert not closing.done()
        slow.go_on.set()
        await closing
    assert [item["status"] for item in slow.collected] == [200]
