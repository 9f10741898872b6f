"""`GET /v1/check`: the verdict as a status, for callers that read only that: curl, nginx `auth_request`, Envoy.

A disallow and a defer are problems, too, which say why; an allow has no content.
"""

import math
import string
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request, Response
from pydantic import Field

from app.api.answers.serialize import refusal_out, rule_out
from app.api.answers.summary import summary
from app.api.parameters import read_query
from app.api.problems import MEDIA_TYPE, Problem, bad_value, documented
from app.api.questions import asking
from app.api.routing import DirectRoute, api_router, documented_as
from app.api.services import services_of
from app.decisions.evaluate import Decision
from app.decisions.question import AGENT_TEXT, URL_TEXT, Agents, QuestionIn, UrlText
from robots_core.notes import agent_notes
from robots_core.robots.verdict import Permission

CHECK_PATH = "/v1/check"
ENVOY = "/v1/check/envoy"
"""The prefix before the path of the request that Envoy's HTTP ext_authz asks about."""

ORIGINAL_URL = "X-Original-URL"
"""The field in which proxies name the URL that they are asked for."""

RULE_LIMIT = 512
"""Characters of a rule in a field: proxies read heads of 4 KiB by default."""

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Envoy asks with the method of the request that it asks about."""

_SCHEMES = ("http", "https")
_MILLISECOND: Final = Decimal("0.001")
_UP: Final = Context(prec=320, rounding=ROUND_CEILING)  # the largest float has 309 digits before its point
_ALLOWED, _ALLOWED_FOR_ENVOY = 204, 200
_PRINTABLE = string.digits + string.ascii_letters + string.punctuation


class CheckQuery(QuestionIn):
    """The parameters, two of which may come in fields."""

    url: UrlText = Field("", description=f"{URL_TEXT} Without it, {ORIGINAL_URL} names the page.")
    agent: Agents = Field(
        "",
        validate_default=True,
        description=f"{AGENT_TEXT} Without it, and with {ORIGINAL_URL}, the User-Agent of the request counts.",
    )


async def envoy(request: Request) -> Response:
    """Answer Envoy, which asks about the request `Host` and path and takes only a 200 for permission."""
    scheme = request.headers.get("x-forwarded-proto", "")
    if scheme not in _SCHEMES:
        detail = "X-Forwarded-Proto must be http or https: let Envoy pass it on by allowed_headers."
        raise bad_value("X-Forwarded-Proto", scheme, detail, "bad-request")
    path = request.scope["raw_path"].decode("latin-1")[len(ENVOY) :]
    query = request.scope["query_string"].decode("latin-1")
    url = f"{scheme}://{request.headers.get('host', '')}{path}" + (f"?{query}" if query else "")
    response = await _check(request, CheckQuery.model_validate(_original(request, url)))
    if response.status_code == _ALLOWED:
        response.status_code = _ALLOWED_FOR_ENVOY
        response.headers["Content-Length"] = "0"
    return response


router = api_router("decisions", DirectRoute)

_FIELDS = {
    "Robots-Verdict": "allow, disallow or defer",
    "Robots-Reason": "What decided, as `reason` of GET /v1/allowed.",
    "Robots-Rule": "The rule that decided, as a string of RFC 9651 with the parameter `line`.",
    "Robots-Version": "The id of the version of robots.txt, as `version` of GET /v1/allowed; absent if that is null.",
    "Robots-Notes": "Codes of the notes of GET /v1/allowed, separated by commas; absent if there are none.",
    "Robots-Interval": "Seconds from one document to the next: `rate.interval` of GET /v1/allowed, rounded up to 1 ms.",
}

_RETRY_AFTER = {"Retry-After": "Seconds after which to ask again."}

_ORIGINAL_URL = {
    "name": ORIGINAL_URL,
    "in": "header",
    "description": "The page's URL in place of `url`, from a proxy.",
    "schema": {"type": "string"},
}

_REFUSAL = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/RefusalOut"}}}}


def _described(text: str, fields: Mapping[str, str] = _FIELDS) -> dict[str, Any]:
    return {
        "description": text,
        "headers": {name: {"description": meaning, "schema": {"type": "string"}} for name, meaning in fields.items()},
    }


@router.get(
    CHECK_PATH,
    status_code=_ALLOWED,
    dependencies=[documented_as(CheckQuery)],
    openapi_extra={"parameters": [_ORIGINAL_URL]},
    responses={
        **documented(404, 422),
        _ALLOWED: _described("Allow."),
        403: _REFUSAL | _described("Disallow; without Robots-Verdict, another problem."),
        503: _REFUSAL | _described("Defer; without Robots-Verdict, another problem.", _FIELDS | _RETRY_AFTER),
    },
)
async def check(request: Request) -> Response:
    """Decide as `GET /v1/allowed` does, and answer by the status: 204 allow, 403 disallow, 503 defer."""
    urls = request.headers.getlist(ORIGINAL_URL)
    if len(urls) > 1:
        raise bad_value(ORIGINAL_URL, urls[-1], f"{ORIGINAL_URL} is repeated. Send it once.", "bad-request")
    return await _check(request, read_query(request, CheckQuery, _original(request, urls[0]) if urls else None))


router.add_route(ENVOY + "/{path:path}", envoy, methods=_METHODS, include_in_schema=False)


async def _check(request: Request, query: CheckQuery) -> Response:
    if not query.url:
        raise bad_value("url", query.url, f"Name the page by the parameter url, or by the header {ORIGINAL_URL}.")
    services = services_of(request)
    decision = await services.decider.decide(query.question(asking(request)))
    return _response(decision, services.caching.of_decision(decision))


def _original(request: Request, url: str) -> dict[str, object]:
    """The question about a request that a proxy forwards, with its User-Agent."""
    return {"url": _encoded(url), "agent": request.headers.get("user-agent", "")}


def _encoded(text: str) -> str:
    """Text of a field with the bytes that are not ASCII percent-encoded: fields do not say what they mean."""
    return text if text.isascii() else quote(text.encode("latin-1"), safe=string.punctuation + " ")


def _response(decision: Decision, cached: str) -> Response:
    """The decision as a status and fields, and as a problem unless the page may be fetched."""
    verdict, rate = decision.verdict, decision.rate
    fields = {
        "Cache-Control": cached,
        "Robots-Verdict": str(verdict.permission),
        "Robots-Reason": str(verdict.reason),
    }
    rule = rule_out(verdict, decision.robots)
    if rule is not None:
        text = quote(f"{rule.directive}: {rule.pattern}", safe=_PRINTABLE + " ")[:RULE_LIMIT]
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        fields["Robots-Rule"] = f'"{escaped}";line={rule.line}'
    if decision.version is not None:
        fields["Robots-Version"] = decision.version
    notes = ", ".join(code for code, _ in agent_notes(decision.question.agent, decision.question.dialect))
    if notes:
        fields["Robots-Notes"] = notes
    if rate is not None and rate.value is not None:
        fields["Robots-Interval"] = interval_text(rate.value.interval)
    if decision.allowed:
        return Response(status_code=_ALLOWED, headers=fields)
    slug = "disallowed" if verdict.permission is Permission.DISALLOW else "deferred"
    seconds = None if decision.retry_at is None else max(1, math.ceil(decision.retry_at - decision.now))
    why = refusal_out(decision)
    return Problem(slug, summary(decision), fields, retry_after=seconds, **why).response()


def interval_text(seconds: float) -> str:
    """Seconds with at most three decimals, rounded up: a crawler that obeys the text is never too fast."""
    # By decimals, since 2.3 * 1000 is less than 2300 in binary.
    exact = Decimal(str(seconds)).quantize(_MILLISECOND, context=_UP)
    return f"{exact:f}".rstrip("0").rstrip(".")
