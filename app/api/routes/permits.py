"""`POST /v1/permits`: may this agent fetch this URL, and when is it its turn; and what came of it."""

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import zip_longest
from typing import Annotated, TypeAlias, assert_never

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.api.batch_items import Agents, Found, after_waiting, answer_to
from app.api.disconnect import while_connected
from app.api.encoding import Renderer
from app.api.json_array import array_response
from app.api.json_bodies import JsonRoute, RequestModel, Whole, body_of, validated
from app.api.middleware.auth import charge, is_operator, key_of
from app.api.parameters import MOST_WAIT, WAIT
from app.api.params import agent_from, dialect_from, target_from
from app.api.problems import Problem, bad_value, documented
from app.api.routes.batch import ITEMS, ORIGINS_AT_ONCE, FailedOut
from app.api.schemas.answers import AnswerOut
from app.api.services import services_of
from app.api.yield_budget import YieldBudget
from app.evaluate import Decision, Question
from app.observability.metrics import Metrics
from app.pacing import permit as permits
from app.pacing.addresses import Addresses
from app.pacing.fleet_secret import FleetSecret
from app.pacing.pacer import Grant, Pacer
from app.pacing.permit import BadPermit, Taken
from app.pacing.schedule import Bounds, spans
from app.pacing.slots import PaceKey, Slot, SlotRequest, WaitTooLong
from app.robots.verdict import Permission

PATH = "/v1/permits"

MAX_WAIT, LONGEST_WAIT = 10.0, 3600.0
"""Seconds that a turn may be away, unless said otherwise, and at most."""

LEAST_COST, MOST_COST = 0.01, 1000.0

LANES_AT_ONCE = 16
"""In so many lanes, a batch takes its turns at once."""

TOO_MUCH = (429, 503)
"""What a page answers with that has the whole fleet hold back."""

router = APIRouter(tags=["pace"], route_class=JsonRoute)


@dataclass(frozen=True, slots=True)
class Pacing:
    """What turns are taken from: `bounds` are those of a host's paces; `addresses` where addresses share one."""

    pacer: Pacer
    bounds: Callable[[str], Bounds]
    shared: Bounds
    addresses: Addresses | None
    secret: FleetSecret
    metrics: Metrics


class PermitIn(RequestModel):
    """One turn that is asked for; what has the name of a parameter of `GET /v1/allowed` means the same."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    url: str = Field(description="The page's URL, absolute, http or https, at most 16 KiB.")
    agent: Agents
    dialect: str | None = Field(None, description="rfc9309, google, seznam, draft1996 or v2; by agent.")
    max_wait: float = Field(MAX_WAIT, ge=0, le=LONGEST_WAIT, description="Seconds that the turn may be away.")
    cost: float = Field(1.0, ge=LEAST_COST, le=MOST_COST, description="How many documents it counts as.")
    caller: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._@-]{1,64}$",
        description="Who shares fairly with others; the id of the API key, else the client's address.",
    )
    wait: float = Field(WAIT, ge=0, le=MOST_WAIT, description="Seconds that a cold fetch may hold the answer.")


class PermitsIn(RequestModel):
    """Several turns at once, each read by itself, so that a bad one fails alone."""

    model_config = ConfigDict(extra="forbid", strict=True)

    items: Annotated[list[SkipValidation[PermitIn]], Field(json_schema_extra={"maxItems": ITEMS})]


class PermitOut(AnswerOut):
    """The answer of `GET /v1/allowed`, and the turn. Only a verdict to allow can have one."""

    permit: str | None = Field(description="What names the turn; null where there is none.")
    go_at: str | None = Field(description="When it is, RFC 3339 with milliseconds, by the store's clock.")
    wait: float | None = Field(description="Seconds until then, or until the turn that would have been too late.")
    interval: float | None = Field(description="Seconds from one document to the next at that time.")
    retry_after: float | None = Field(
        description="Seconds after which to ask again, where the wait would be longer than max_wait: nothing is kept."
    )
    degraded: bool = Field(description="Whether it was given without the store: by this process alone.")


class PermitsOut(BaseModel):
    """What comes of every item, in the order of the items."""

    permits: list[PermitOut | FailedOut]


class OutcomeIn(RequestModel):
    """What came of a turn. A 429 or a 503 of the page has the whole fleet hold back from the origin."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    status: Annotated[int | None, Whole] = Field(None, ge=100, le=599, strict=True, description="The page's status.")
    retry_after: float | str | None = Field(
        None, description="The page's Retry-After: seconds, or the header as it came; nonsense is none."
    )
    elapsed: float | None = Field(None, ge=0, le=86_400, strict=True, description="Seconds that the page took.")
    released: bool = Field(False, strict=True, description="The turn was not used: others may have it.")


class OutcomeOut(BaseModel):
    released: bool = Field(description="Whether the turn is free again.")
    backoff: float | None = Field(description="Seconds for which the origin is now left alone; null for no more.")
    degraded: bool = Field(description="Whether the fleet could not be told.")


@dataclass(frozen=True, slots=True)
class _Asked:
    """One turn that is asked for, read."""

    question: Question
    caller: str
    cost: float
    max_wait: float


_Outcome: TypeAlias = tuple[Decision, Mapping[str, object]] | Problem
"""What comes of an item of a batch: the answer, and the members that tell the turn."""

_NO_CALLER = re.compile(r"[^A-Za-z0-9._@-]")

# The body is read here and not by FastAPI, since items are read one by one; `openapi` tells it what the models are.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"anyOf": [{"$ref": f"#/components/schemas/{it.__name__}"} for it in (PermitIn, PermitsIn)]}
            }
        },
    }
}


@router.post(PATH, response_model=PermitOut | PermitsOut, responses={**documented(413, 422, 503)}, openapi_extra=_BODY)
async def permit(request: Request) -> Response:
    """Decision as `GET /v1/allowed` does, and where that is to allow, reserve the agent's next turn at the origin.

    All who ask share the pace of the origin's file, whichever process they ask. With `items`, several are answered at
    once, and a bad one fails alone.
    """
    said = await body_of(request)
    if isinstance(said, dict) and "items" in said:
        batch = validated(PermitsIn, said)
        if len(batch.items) > ITEMS:
            detail = f"The batch has {len(batch.items)} items; {ITEMS} at most are answered."
            raise Problem(422, "too-many-items", detail, parameter="items", value=len(batch.items))
        charge(request, len(batch.items) - 1)
        renderer = services_of(request).renderer
        outcomes = await while_connected(request.receive, _all_permits(request, batch.items))
        return await array_response("permits", (_text_of(outcome, renderer) for outcome in outcomes))
    asked = _read(said, _caller(request))
    decider = services_of(request).decider
    answer = await decider.decide(asked.question)
    turn = await _turn_of(request, asked, answer, await _places(request, answer))
    text = _joined(services_of(request).renderer.render(answer).text, turn)
    return Response(text, media_type="application/json", headers={"Cache-Control": "no-store"})


@router.post(PATH + "/{permit}/outcome", responses={**documented(413, 422)})
async def outcome(request: Request, permit: str, said: OutcomeIn) -> OutcomeOut:
    """Report what came of a turn: it was not used, or the page answered, and may have asked everyone to hold back.

    What one API key, or without keys one address, reports has the fleet hold back for 10 minutes at most. A longer
    Retry-After is kept once another one reports as long a one, or an operator does.
    """
    pacing = services_of(request).pacing
    try:
        taken = permits.read(permit, pacing.secret.accepted)
    except BadPermit as error:
        raise bad_value("permit", permit, str(error)) from None
    pacer = pacing.pacer
    released = degraded = False
    if said.released:
        backs = [await pacer.release(slot.lane, slot.name) for slot in taken]
        released, degraded = bool(backs[0].value), any(back.degraded for back in backs)
    backoff = None
    if said.status in TOO_MUCH:
        now = services_of(request).now()
        reporter = None if is_operator(request) else _caller(request)
        back = await pacer.hold_back(taken[0].lane, retry_after(said.retry_after, now), reporter)
        backoff, degraded = round(back.value, 3), degraded or back.degraded
        lists = services_of(request).origin_lists
        lists.note_backoff(taken[0].lane.place, now.timestamp() + back.value)
    pacing.metrics.outcome(said.status, said.elapsed, released=said.released, backoff=backoff is not None)
    return OutcomeOut(released=released, backoff=backoff, degraded=degraded)


def retry_after(said: float | str | None, now: datetime) -> float:
    """Seconds from `now`, by a number, or a Retry-After field (RFC 9110 10.2.3); 0 for what cannot be read."""
    if said is None:
        return 0.0
    text = said.strip() if isinstance(said, str) else said
    try:
        seconds = float(text)
    except ValueError:
        seconds = _seconds_to(str(text)[:64], now)
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER) if math.isfinite(seconds) else 0.0


_LONGEST_RETRY_AFTER = 1e9


def _seconds_to(text: str, now: datetime) -> float:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    return ((date if date.tzinfo is not None else date.replace(tzinfo=UTC)) - now).total_seconds()


def _read(said: object, caller: str, where: str = "body") -> _Asked:
    if not isinstance(said, dict):
        raise bad_value("item", said, "A turn is asked for by an object with the members url and agent.")
    it = validated(PermitIn, said, where)
    agent = agent_from(it.agent)
    question = Question(target_from(it.url), agent, dialect_from(it.dialect, agent), wait=it.wait)
    return _Asked(question, it.caller or caller, it.cost, it.max_wait)


def _caller(request: Request) -> str:
    key = key_of(request.scope)
    if key is not None:
        return key.id
    host = "" if request.client is None else request.client.host
    return _NO_CALLER.sub("-", host)[:64] or "-"


async def _all_permits(request: Request, items: Sequence[object]) -> list[_Outcome]:
    """What comes of every item, in their order; its JSON, which may be long, is rendered when it is sent."""
    decider = services_of(request).decider
    begun = time.monotonic()
    caller = _caller(request)
    asked: list[_Asked | Problem] = []
    stretch = YieldBudget()
    for item in items:
        try:
            asked.append(_read(item, caller, "item"))
        except Problem as problem:
            asked.append(problem)
        if stretch.is_over():
            await stretch.next()
    found: dict[int, Found] = {at: one for at, one in enumerate(asked) if isinstance(one, Problem)}
    good = {at: one for at, one in enumerate(asked) if isinstance(one, _Asked)}

    async def answer(group: Iterable[int]) -> None:
        stretch = YieldBudget()
        for at in group:
            found[at] = await answer_to(decider, after_waiting(good[at].question, begun))
            if stretch.is_over():
                await stretch.next()

    await _at_once(map(answer, _grouped(good, lambda at: good[at].question.target.origin)), ORIGINS_AT_ONCE)
    answers = {at: one for at, one in sorted(found.items()) if isinstance(one, Decision)}
    places: dict[int, _Places] = {}

    async def place(group: Iterable[int]) -> None:
        for at in group:
            places[at] = await _places(request, answers[at])

    await _at_once(map(place, _grouped(answers, lambda at: good[at].question.target.origin.host)), ORIGINS_AT_ONCE)
    turns: dict[int, Mapping[str, object]] = {}

    async def take(group: Sequence[int]) -> None:
        stretch = YieldBudget()
        for at in _in_turns(group, lambda at: good[at].caller):
            turns[at] = await _turn_of(request, good[at], answers[at], places[at])
            if stretch.is_over():
                await stretch.next()

    # Turns in one lane are taken one after the other, so that who comes first in the batch goes first.
    await _at_once(map(take, _grouped(answers, lambda at: places[at].key)), LANES_AT_ONCE)
    return [one if isinstance(one, Problem) else (one, turns[at]) for at, one in sorted(found.items())]


def _grouped(numbers: Iterable[int], key: Callable[[int], Hashable]) -> Iterator[Sequence[int]]:
    groups: dict[Hashable, list[int]] = {}
    for number in numbers:
        groups.setdefault(key(number), []).append(number)
    return iter(groups.values())


def _in_turns(group: Sequence[int], caller: Callable[[int], str]) -> Iterator[int]:
    """The first of every caller, then the second of every one, and so on."""
    # One pass over the group: a batch may be of a thousand callers.
    queues: dict[str, list[int]] = {}
    for at in group:
        queues.setdefault(caller(at), []).append(at)
    for round_ in zip_longest(*queues.values()):
        yield from (at for at in round_ if at is not None)


async def _at_once(work: Iterator[Coroutine[object, object, None]], most: int) -> None:
    """Do all of it, so much at once."""

    async def some() -> None:
        for part in work:  # whoever is free takes the next
            await part

    async with asyncio.TaskGroup() as workers:
        for _ in range(most):
            workers.create_task(some())


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a turn is taken: in the agent's lane, and in that of the address where there is one."""

    lane: PaceKey
    shared: PaceKey | None

    @property
    def key(self) -> Hashable:
        """What turns must not be taken at once in."""
        return self.shared or self.lane


async def _places(request: Request, answer: Decision) -> _Places:
    pacing = services_of(request).pacing
    question = answer.question
    lane = PaceKey.of(question.target.origin, question.agent.token)
    if pacing.addresses is None or answer.verdict.permission is not Permission.ALLOW:
        return _Places(lane, None)
    return _Places(lane, await pacing.addresses.lane(question.target.origin.host))


def _text_of(outcome: _Outcome, renderer: Renderer) -> str:
    if isinstance(outcome, Problem):
        return f'{{"problem":{outcome.text}}}'
    answer, turn = outcome
    return _joined(renderer.render(answer).text, turn)


async def _turn_of(request: Request, asked: _Asked, answer: Decision, places: _Places) -> Mapping[str, object]:
    """The members of the answer that tell the turn, where there is one."""
    pacing = services_of(request).pacing
    decision = answer.verdict.permission
    if decision is not Permission.ALLOW:
        pacing.metrics.permit_denied(decision)
        return _NO_TURN
    turn = await pacing.pacer.turn(*_wishes(pacing, asked, answer, places))
    match turn.reply:
        case Slot(wait=wait):
            pacing.metrics.permit_granted(wait, degraded=turn.degraded)
        case WaitTooLong():
            pacing.metrics.permit_denied("wait_too_long", degraded=turn.degraded)
        case _:
            assert_never(turn.reply)
    return _turn_out(turn, pacing.secret)


def _wishes(pacing: Pacing, asked: _Asked, answer: Decision, places: _Places) -> tuple[SlotRequest, SlotRequest | None]:
    snapshot, terms = answer.cached.snapshot, answer.terms
    bounds = pacing.bounds(answer.question.target.origin.host)
    pace = spans(None if terms is None else terms.rates, answer.now, bounds, answer.delay)
    fetched_at = 0.0 if snapshot is None else snapshot.checked_at
    wish = SlotRequest(places.lane, pace, asked.caller, asked.cost, asked.max_wait, fetched_at)
    if places.shared is None:
        return wish, None
    floor = spans(None, answer.now, pacing.shared)
    return wish, SlotRequest(places.shared, floor, asked.caller, asked.cost, asked.max_wait, fetched_at)


_NO_TURN: Mapping[str, object] = {
    "permit": None,
    "go_at": None,
    "wait": None,
    "interval": None,
    "retry_after": None,
    "degraded": False,
}


def _turn_out(turn: Grant, secret: FleetSecret) -> Mapping[str, object]:
    reply = turn.reply
    told = {**_NO_TURN, "wait": round(reply.wait, 6), "interval": reply.interval, "degraded": turn.degraded}
    if isinstance(reply, WaitTooLong):
        return {**told, "retry_after": round(reply.retry_after, 6)}
    slots = (reply,) if turn.shared is None else (reply, turn.shared)
    # A millisecond begins before the instant that lies in it: who goes by it is not to be early.
    go_at = datetime.fromtimestamp(math.ceil(reply.go_at * 1000) / 1000, UTC).replace(tzinfo=None)
    return {
        **told,
        "permit": permits.write((Taken(slot.lane, slot.name) for slot in slots), secret.current),
        "go_at": go_at.isoformat(timespec="milliseconds") + "Z",
    }


def _joined(answer: str, members: Mapping[str, object]) -> str:
    return f"{answer[:-1]},{json.dumps(members, separators=(',', ':'))[1:]}"
