"""Unknown parameters and members are refused on every route, with the one that may be meant."""

import json
import re
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from app.api.json_bodies import RequestModel, read_item, validated
from app.api.problems import Problem
from app.api.routes.permits import PermitIn
from app.decisions.question import QuestionIn
from tests.api.document import DOCUMENT
from tests.api.service import Service, running, slug

pytestmark = pytest.mark.usefixtures("store_client")

OPERATIONS = [(method.upper(), path) for path, operations in DOCUMENT["paths"].items() for method in operations]

LISTS = {"agent", "purpose"}
"""The parameters that may be repeated."""

URL_HINT = " If it belongs to the page's URL, percent-encode that URL."


def parameters(method: str, path: str) -> list[str]:
    """The names of an operation's query parameters."""
    described = DOCUMENT["paths"][path][method.lower()].get("parameters", ())
    return [it["name"] for it in described if it["in"] == "query"]


def misspelt(name: str) -> set[str]:
    """What callers write in place of a name: a letter less, a plural, brackets, another case, another separator."""
    dropped = {name[:at] + name[at + 1 :] for at in range(len(name))}
    respelt = {f"{name}s", f"{name}[]", f"{name}[0]", name.upper(), name.title(), name.replace("_", "-"), f"{name}_"}
    return (dropped | respelt | {name.replace("_", "")}) - {name, ""}


def assert_suggested(kind: str, name: str, written: str, detail: str) -> None:
    found = re.fullmatch(rf"Unknown {kind} '(.*)'\. Did you mean '(.*)'\?", detail)
    assert found is not None, (name, detail)
    assert found[1] == written
    # One letter may be one of several names.
    assert found[2] == name or (len(written) == 1 and written in found[2]), (written, found[2])


async def asked(service: Service, method: str, path: str, query: str) -> httpx.Response:
    """The answer to a request with a query, as it is written, and with an empty body if the operation has one."""
    has_body = "requestBody" in DOCUMENT["paths"][path][method.lower()]
    target = re.sub(r"\{.*?\}", "x", path)
    return await service.client.request(method, f"{target}?{query}", json={} if has_body else None)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_a_misspelt_parameter_is_refused_with_the_one_that_is_meant(
    store_url: str, method: str, path: str
) -> None:
    names = parameters(method, path)
    async with running(store_url) as service:
        for name in names:
            for written in misspelt(name) - set(names):
                response = await asked(service, method, path, f"{name}=1&{written}=2")
                body = response.json()
                assert (response.status_code, body.get("parameter"), body.get("value")) == (422, written, "2"), body
                assert slug(response) == "bad-request"
                assert_suggested("parameter", name, written, body["detail"].removesuffix(URL_HINT))


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_an_unrelated_parameter_is_refused_with_those_that_there_are(
    store_url: str, method: str, path: str
) -> None:
    names = parameters(method, path)
    async with running(store_url) as service:
        response = await asked(service, method, path, "zzz=9")
        body = response.json()
        assert (response.status_code, body.get("parameter"), body.get("value")) == (422, "zzz", "9"), body
        begin = f"The parameters are {', '.join(names)}." if names else "There are no parameters here."
        assert body["detail"] == f"Unknown parameter 'zzz'. {begin}{URL_HINT if 'url' in names else ''}"


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_a_parameter_without_a_name_is_refused(store_url: str, method: str, path: str) -> None:
    async with running(store_url) as service:
        response = await asked(service, method, path, "=x&")
        assert (response.status_code, response.json()["parameter"], response.json()["value"]) == (422, "", "x")
        assert "has no name" in response.json()["detail"]


async def test_a_url_that_is_not_encoded_is_refused(store_url: str) -> None:
    """Its own parameters would be cut off, and another page decided on."""
    async with running(store_url) as service:
        response = await service.client.get("/v1/allowed?agent=a&url=http://h/search?q=x&page=2&hl=en")
        assert (response.status_code, response.json()["parameter"]) == (422, "page")
        assert response.json()["detail"].endswith(URL_HINT)


@pytest.mark.parametrize("path", ["/v1/allowed", "/v1/robots", "/healthz"])
async def test_a_hostile_name_is_cut(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        for name in ("{x}" * 5000, "%ff%00" * 5000, "&".join(f"k{at}" for at in range(5000))):
            response = await service.client.get(f"{path}?{name}")
            assert response.status_code == 422
            assert len(response.content) < 2000


MODELS: list[type[BaseModel]] = sorted(RequestModel.__subclasses__(), key=lambda model: model.__name__)


def validate(model: type[BaseModel], members: object) -> None:
    if model in (QuestionIn, PermitIn):
        read_item(model, members)
    else:
        validated(model, members)


@pytest.mark.parametrize("model", [*MODELS, QuestionIn, PermitIn])
def test_a_misspelt_member_is_refused_with_the_one_that_is_meant(model: type[BaseModel]) -> None:
    names = {field.alias or name for name, field in model.model_fields.items()}
    for name in names:
        for written in misspelt(name) - names:
            with pytest.raises(Problem) as raised:
                validate(model, {written: 2})  # also where another member is missing
            problem = raised.value
            assert (problem.slug, problem.extra) == ("bad-request", {"parameter": written, "value": 2})
            assert_suggested("member", name, written, str(problem.detail))
    with pytest.raises(Problem, match=rf"^422: Unknown member 'zz\{{x'. The members are .*{min(names)}"):
        validate(model, {"zz{x": 2})


async def test_a_nested_member_is_named_by_its_place(store_url: str) -> None:
    async with running(store_url) as service:
        outcome = {"status": 503, "had-copy": False}
        response = await service.client.post("/v1/test", json={"urls": ["http://h/"], "agents": [], "outcome": outcome})
        assert response.json()["parameter"] == "outcome.had-copy"
        assert response.json()["detail"] == "Unknown member 'had-copy'. Did you mean 'had_copy'?"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/allowed?url=http://h/&agent=a&purposes=ai-train", None),
        ("GET", "/v1/check?url=http://h/&agent=a&purposes=ai-train", None),
        ("POST", "/v1/allowed", {"url": "http://h/", "agent": "a", "purposes": "ai-train"}),
        ("POST", "/v1/permits", {"url": "http://h/", "agent": "a", "purposes": "ai-train"}),
        ("POST", "/v1/test", {"robots": "", "urls": ["http://h/"], "agents": ["a"], "purposes": "ai-train"}),
    ],
)
async def test_purpose_is_the_one_name(store_url: str, method: str, path: str, body: dict[str, Any] | None) -> None:
    """A purpose under another name would be an allow where the site refuses the purpose."""
    async with running(store_url, enforce_purposes=True) as service:
        batch = path == "/v1/allowed" and body is not None
        response = await service.client.request(method, path, json={"items": [body]} if batch else body)
        problem = response.json()["answers"][0]["problem"] if batch else response.json()
        assert (problem["status"], problem["parameter"], problem["value"]) == (422, "purposes", "ai-train")
        assert problem["detail"].removesuffix(URL_HINT).endswith("Did you mean 'purpose'?")


SINGLE = [(method, path, name) for method, path in OPERATIONS for name in parameters(method, path) if name not in LISTS]


@pytest.mark.parametrize(("method", "path", "name"), SINGLE)
async def test_a_repeated_parameter_is_refused(store_url: str, method: str, path: str, name: str) -> None:
    """It may be a part of the page's URL, and then another page would be decided on."""
    async with running(store_url) as service:
        for query in (f"{name}=1&{name}=2", f"{name}=2&{name}=2", f"{name}=&{name}=2"):
            response = await asked(service, method, path, query)
            body = response.json()
            assert (response.status_code, body.get("parameter"), body.get("value")) == (422, name, "2"), body
            hint = URL_HINT if "url" in parameters(method, path) else ""
            assert body["detail"] == f"Parameter {name!r} is repeated. Give it once.{hint}"


@pytest.mark.parametrize("path", ["/v1/check", "/v1/allowed"])
async def test_a_url_in_a_url_that_is_not_encoded_is_refused(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(f"{path}?agent=a&url=http://h/share?u=1&url=http://h/open")
        assert (response.status_code, response.json()["parameter"]) == (422, "url")
        response = await service.client.get(path, params={"agent": ["a", "b"], "purpose": ["search", "ai-input"]})
        assert "repeated" not in response.text


async def test_a_repeated_original_url_is_refused(store_url: str) -> None:
    async with running(store_url) as service:
        fields = [("X-Original-URL", "http://h/private"), ("X-Original-URL", "http://h/")]
        response = await service.client.get("/v1/check", headers=fields)
        assert (response.status_code, response.json()["parameter"]) == (422, "X-Original-URL")


JSON = "application/json"
BODIES = [
    (method, path)
    for method, path in OPERATIONS
    if JSON in DOCUMENT["paths"][path][method.lower()].get("requestBody", {"content": ()})["content"]
]


@pytest.mark.parametrize(("method", "path"), BODIES)
@pytest.mark.parametrize(
    "body",
    [
        b'{"url":"/private/x","url":"/ok"}',
        b'{"url" : "/private/x", "\\u0075rl": "/ok"}',
        b'{"items":[{"url":"/ok","agent":"a"},{"url":"/private/x","agent":"a","url":"/ok"}]}',
        b'{"a":"x\\":","url":"/x","url":"/ok"}',
        b'{"a":"\\ud800","url":"/x","url":"/ok"}',
        b'{"a":{"b":[{"url"\n:null,"url":{}}]}}',
        b'{"a":"\\u003a","url":"\\u003A","url":"a:b"}',
    ],
)
async def test_a_repeated_member_is_refused(store_url: str, method: str, path: str, body: bytes) -> None:
    async with running(store_url) as service:
        headers = {"Content-Type": JSON}
        response = await service.client.request(method, re.sub(r"\{.*?\}", "x", path), content=body, headers=headers)
        assert (response.status_code, response.json().get("parameter")) == (422, "url"), response.text
        assert response.json()["detail"] == "Member 'url' is repeated. Give it once."


@pytest.mark.parametrize(("path", "more"), [("/v1/allowed", b',"agent":"a"'), ("/v1/bundle", b"")])
async def test_a_repeated_member_of_a_line_is_refused(store_url: str, path: str, more: bytes) -> None:
    """The other lines are answered."""
    lines = b'{"url":"http://h/x"%b,"url":"http://h/"}\n{"url":"http://h/"%b}\n' % (more, more)
    async with running(store_url) as service:
        headers = {"Content-Type": "application/x-ndjson"}
        response = await service.client.post(path, content=lines, headers=headers)
        refused, answered = map(json.loads, response.text.splitlines())
        assert (refused["problem"]["status"], refused["problem"].get("parameter")) == (422, "url")
        assert answered.get("problem", {}).get("status") != 422
