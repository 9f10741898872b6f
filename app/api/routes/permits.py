"""`POST /v1/permits`: decide a question and reserve a slot; then report its outcome. Each as a batch, too."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from fastapi import Body, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.api import signatures
from app.api.answers.http_caching import NO_STORE
from app.api.answers.schema import AnswerOut
from app.api.caller import Caller, caller_of
from app.api.item_results import encode_result, holding
from app.api.json_array import array_response
from app.api.json_bodies import JsonInteger, RequestModel, body_of, read_item, validated
from app.api.middleware.answer_room import held_answers
from app.api.parameters import query_of
from app.api.problems import bad_value, documented
from app.api.questions import asking, read_all
from app.api.routes.batch import ITEMS, FailedOut, few
from app.api.routing import DirectRoute, api_router, documented_as
from app.api.services import Services, services_of
from app.decisions.question import Asking, QuestionNowIn, UrlText, target_from
from app.edge.facts import PAGE_CHARS, PRICE_CHARS
from app.loop.work_turns import YieldBudget
from app.pacing.permit import BadPermit, SlotRef
from app.pacing.permits import Outcome, PermitRequest, PermitResult, Report, Reported, Unsigned
from app.pacing.schedule import Bound
from app.pacing.slots import Slot
from robots_core.times import read_retry_after

PERMITS_PATH = "/v1/permits"

DEFAULT_MAX_WAIT, LONGEST_MAX_WAIT = 10.0, 3600.0
"""Seconds until a slot, by default and at most."""

MIN_COST, MAX_COST = 0.01, 1000.0

ACCEPT_SIGNATURE_CHARS = 4096
"""Characters of an Accept-Signature field, at most."""

MAX_RETRY_AFTER = 1e9
"""Seconds: a larger Retry-After is read as this one."""

router = api_router("pace", DirectRoute)


class PermitIn(QuestionNowIn):
    """One question and the slot that it needs; members named as parameters of `GET /v1/allowed` mean the same."""

    sign: bool = Field(
        False,
        description="Whether to sign the GET of the page as the agent's profile, for sites that verify who asks.",
    )
    accept_signature: str | None = Field(
        None,
        max_length=ACCEPT_SIGNATURE_CHARS,
        description="The Accept-Signature of the page's response (RFC 9421 5.1): sign as it asks, with its nonce, "
        "as if with `sign`.",
    )
    max_wait: float = Field(DEFAULT_MAX_WAIT, ge=0, le=LONGEST_MAX_WAIT, description="Seconds until the slot, at most.")
    cost: float = Field(1.0, ge=MIN_COST, le=MAX_COST, description="How many documents the slot counts as.")
    caller: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._@-]{1,64}$",
        description=(
            "Slots are shared fairly between API keys, and then between the callers of a key; the key's id by default, "
            "without API keys the client's address."
        ),
    )

    def request(self, asking: Asking, caller: Caller, services: Services) -> PermitRequest:
        """The question, and the slot that it needs. Raises BadQuestion, and Problem if the caller may not sign."""
        question, sign = self.question(asking), None
        if self.sign or self.accept_signature is not None:
            question, sign = signatures.prepare(question, self.url, self.accept_signature, caller, services)
        return PermitRequest(question, _name_of(caller, self.caller), self.cost, self.max_wait, sign)


class PermitsIn(RequestModel):
    """Several requests at once; a bad one fails alone."""

    model_config = ConfigDict(extra="forbid", strict=True)

    items: Annotated[list[SkipValidation[PermitIn]], Field(json_schema_extra={"maxItems": ITEMS})]


class SignedOut(BaseModel):
    """The header fields of a signed request (RFC 9421). They hold for this URL, from the slot on until `expires`."""

    headers: dict[str, str] = Field(
        description="The fields to send in place of the client's own: Signature-Agent, Signature-Input, Signature, and "
        "the profile's User-Agent and From."
    )
    method: str = Field(description="The method that is signed.")
    host: str = Field(description="The host that is signed, with its port if it is not 443.")
    expires: str = Field(description="When the signature expires: RFC 3339.")


class PermitOut(AnswerOut):
    """The answer of `GET /v1/allowed`, and the slot. Only the verdict allow can have one."""

    pool: str | None = Field(description="What shares the pace: a host, a domain, an origin, or a pool of the table.")
    permit: str | None = Field(description="Identifies the slot in reports; null if none was reserved.")
    go_at: str | None = Field(description="When the slot begins: RFC 3339 with milliseconds, by the store's clock.")
    wait: float | None = Field(description="Seconds until the slot, or until the next free one if it is too far away.")
    interval: float | None = Field(description="Seconds between documents at that time.")
    bound: Bound | None = Field(
        description="What decided the interval: the file, an operator's override, the floor, the time that pages take, "
        "or what is left of a refusal; budget: the documents of the day are used up."
    )
    retry_after: float | None = Field(
        description="Seconds until this caller's turn, if no slot was reserved: ask again then, as the same caller."
    )
    degraded: bool = Field(description="Whether the slot was given without the store.")
    signed: SignedOut | None = Field(None, description="With `sign` alone: the signature; null if there is none.")
    unsigned: Unsigned | None = Field(
        None,
        description="With `sign` alone: why there is no signature. The verdict is not allow, or there is no slot; the "
        "agent's profile has no key; the URL is not https, or clients may write its host otherwise; `accept_signature` "
        "asks for another kind of signature; the slot is more than 300 s away; or the API key was revoked meanwhile.",
    )


class PermitsOut(BaseModel):
    """The result of every item, in the order of the items."""

    permits: list[PermitOut | FailedOut]


class OutcomeIn(RequestModel):
    """The outcome of a slot. If the page answered 429 or 503, the whole fleet backs off from the origin."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    status: Annotated[int | None, JsonInteger] = Field(
        None, ge=100, le=599, strict=True, description="The page's status."
    )
    retry_after: float | str | None = Field(
        None, description="The page's Retry-After: seconds, or the header as received; an invalid one is ignored."
    )
    elapsed: float | None = Field(None, ge=0, le=86_400, strict=True, description="Seconds that the page took.")
    released: bool = Field(False, strict=True, description="The slot was not used: it becomes free for others.")
    price: str | None = Field(
        None,
        strict=True,
        min_length=1,
        max_length=PRICE_CHARS,
        description="What a 402 asks for the page, as its field crawler-price says; `edge` repeats it.",
    )
    url: UrlText | None = Field(None, strict=True, description="The page, if it has a price.")


class ReportIn(OutcomeIn):
    """The outcome of the slot that `permit` names."""

    permit: str = Field(strict=True, description="The permit of the slot.")


class OutcomesIn(RequestModel):
    """Several outcomes at once; a bad one fails alone."""

    model_config = ConfigDict(extra="forbid", strict=True)

    items: Annotated[list[SkipValidation[ReportIn]], Field(json_schema_extra={"maxItems": ITEMS})]


class OutcomeOut(BaseModel):
    """The effect of the report."""

    released: bool = Field(description="Whether the slot is free again.")
    backoff: float | None = Field(description="Seconds left of a backoff that the report began or extended; else null.")
    degraded: bool = Field(description="Whether the store was down, so that only this process has the report so far.")


class OutcomesOut(BaseModel):
    """The effect of every report, in the order of the items."""

    outcomes: list[OutcomeOut | FailedOut]


_BAD_IN_CALLER = re.compile(r"[^A-Za-z0-9._@-]")


@router.post(
    PERMITS_PATH,
    response_model=PermitOut,
    responses={**documented(403, 413, 422, 503)},
    dependencies=[documented_as(PermitIn, Body())],
)
async def permit(request: Request) -> Response:
    """Answer as `GET /v1/allowed` does, and if the verdict is allow, reserve the agent's next slot at the origin.

    All callers share the pace of the origin's file, whichever process they ask.
    """
    query_of(request, ())
    read = _reader(request)
    services, body = services_of(request), await body_of(request)
    return _json(_with_slot(await services.permits.request(read(body), services.encoder.encode)))


@router.post(
    PERMITS_PATH + "/batch",
    response_model=PermitsOut,
    responses={**documented(413, 422, 503)},
    dependencies=[documented_as(PermitsIn, Body())],
)
async def permits(request: Request) -> Response:
    """Answer every item as `POST /v1/permits` would. A bad item fails alone, with a problem in its place."""
    query_of(request, ())
    items = validated(PermitsIn, await body_of(request)).items
    few(items)
    read = _reader(request)

    async def answered(budget: YieldBudget) -> Iterator[bytes]:
        caller_of(request.scope).charge(len(items) - 1)
        services = services_of(request)
        encode = holding(services.encoder.encode, held_answers(request.scope))
        results = await services.permits.request_batch(read_all(items, read), encode, budget)
        return (encode_result(results[number], _with_slot) for number in range(len(items)))

    return await array_response(request, "permits", answered)


@router.post(
    PERMITS_PATH + "/{permit}/outcome",
    response_model=OutcomeOut,
    responses={**documented(413, 422)},
    dependencies=[documented_as(OutcomeIn, Body())],
)
async def outcome(request: Request, permit: str) -> Response:
    """Report the outcome of a slot: it was not used, or the page answered. A 429 or 503 makes the fleet back off.

    One reporter (an API key, or without keys an address) can make the fleet back off for at most 10 minutes. A longer
    Retry-After takes effect once a second reporter, or an operator, reports one as long.
    """
    query_of(request, ())
    body = validated(OutcomeIn, await body_of(request))
    report = _report(request, permit, body)
    return _json(_outcome_out(await services_of(request).permits.report(report)))


@router.post(
    PERMITS_PATH + "/outcomes",
    response_model=OutcomesOut,
    responses={**documented(413, 422, 503)},
    dependencies=[documented_as(OutcomesIn, Body())],
)
async def outcomes(request: Request) -> Response:
    """Report the outcomes of several slots, each as `POST /v1/permits/{permit}/outcome` takes it, with its `permit`."""
    query_of(request, ())
    items = validated(OutcomesIn, await body_of(request)).items
    few(items)

    def read(item: object) -> Report:
        body = read_item(ReportIn, item)
        return _report(request, body.permit, body)

    async def reported(budget: YieldBudget) -> Iterator[bytes]:
        caller_of(request.scope).charge(len(items) - 1)
        results = await services_of(request).permits.report_batch(read_all(items, read), budget)
        return (encode_result(results[number], _outcome_out) for number in range(len(items)))

    return await array_response(request, "outcomes", reported)


def _reader(request: Request) -> Callable[[object], PermitRequest]:
    """Reads what a caller asks for. Raises Problem and BadQuestion."""
    asks, caller, services = asking(request), caller_of(request.scope), services_of(request)
    return lambda item: read_item(PermitIn, item).request(asks, caller, services)


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers={"Cache-Control": NO_STORE})


def retry_after(value: float | str | None, now: datetime) -> float:
    """Seconds from `now`: of a number, or of a Retry-After field; 0 for anything else."""
    seconds = read_retry_after(value.strip(), now.timestamp()) if isinstance(value, str) else value
    return min(max(0.0, seconds or 0.0), MAX_RETRY_AFTER)


def _report(request: Request, permit: str, body: OutcomeIn) -> Report:
    """What the caller says about the permit's slot; an operator has no name there. Raises Problem."""
    services = services_of(request)
    try:
        slot = services.permits.verified(permit)
    except BadPermit as error:
        raise bad_value("permit", permit, str(error)) from None
    seconds = retry_after(body.retry_after, services.now())
    caller = caller_of(request.scope)
    reporter = None if caller.is_operator else _id_of(caller)
    price, page = _price(body, slot)
    return Report(slot, Outcome(body.status, seconds, body.elapsed, body.released, reporter, price, page))


def _price(body: OutcomeIn, slot: SlotRef) -> tuple[str, str]:
    """The price and its page, "" for none. Raises Problem and BadQuestion."""
    if body.price is None:
        return "", ""
    if body.status != 402:
        raise bad_value("price", body.price, "Only a page with the status 402 has a price.", "bad-request")
    if not (body.price.isascii() and body.price.isprintable()):
        detail = "A price is printable ASCII, as in the field crawler-price."
        raise bad_value("price", body.price, detail, "bad-request")
    if body.url is None:
        return body.price, ""
    target = target_from(body.url, "url")
    if target.origin.key != slot.origin:
        raise bad_value("url", body.url, f"The permit is for a page of {slot.origin}.")
    return body.price, target.url if len(target.url) <= PAGE_CHARS else ""


def _id_of(caller: Caller) -> str:
    """The id of a caller as slots name it."""
    return _BAD_IN_CALLER.sub("-", caller.id)[:64] or "-"


def _name_of(caller: Caller, name: str | None) -> str:
    """The caller of a slot, as SlotRequest has it; neither a key's id nor a name has a slash."""
    own = _id_of(caller)
    return f"{own}/{name or own}" if caller.keys_required else name or own


def _outcome_out(result: Reported) -> bytes:
    backoff = None if result.backoff is None else round(result.backoff, 3)
    return msgspec.json.encode({"released": result.released, "backoff": backoff, "degraded": result.degraded})


def _with_slot(result: PermitResult) -> bytes:
    """The JSON of the answer, which is an object, with the members of the slot added at its end."""
    return result.answer[:-1] + b"," + msgspec.json.encode(_members(result))[1:]


def _members(result: PermitResult) -> Mapping[str, object]:
    """The members of PermitOut beside those of AnswerOut."""
    names = ("pool", "permit", "go_at", "wait", "interval", "bound", "retry_after")
    members: dict[str, object] = {**dict.fromkeys(names), "degraded": False}
    if result.grant is not None:
        slot = result.grant.result
        members.update(pool=result.pool, wait=round(slot.wait, 6), interval=slot.interval, bound=slot.bound)
        members["degraded"] = result.grant.degraded
        if isinstance(slot, Slot):
            members.update(permit=result.permit, go_at=_milliseconds_up(slot.go_at))
        else:
            members["retry_after"] = round(slot.retry_after, 6)
    return members if result.signing is None else members | result.signing._asdict()


def _milliseconds_up(at: float) -> str:
    # Rounded up: rounded down, the instant would be before the slot begins.
    instant = datetime.fromtimestamp(math.ceil(at * 1000) / 1000, UTC).replace(tzinfo=None)
    return instant.isoformat(timespec="milliseconds") + "Z"
