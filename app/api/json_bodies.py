"""JSON request bodies: bounded before they are parsed, parsed off the event loop if they are large, and validated."""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError, from_json, to_json

from app.api.problems import Problem, bad_value, invalid, repeated_member, unknown_item_member, unknown_member
from robots_core.robots.access import media_type

SMALL_BODY = 64 * 1024
"""Bytes of the largest body that is parsed on the event loop, which takes a few milliseconds at most."""

TOKENS_LIMIT = SMALL_BODY
"""Strings, commas and opening brackets that a body may have. A full batch has up to 48,000."""

_JSON: Final = "application/json"

M = TypeVar("M", bound=BaseModel)
P = ParamSpec("P")
T = TypeVar("T")

# One thread: the parser holds the interpreter's lock, so with more of them the event loop would wait for each.
_parser = ThreadPoolExecutor(1, thread_name_prefix="json")


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


JsonInteger: Final = BeforeValidator(_whole)
"""An integer of a strict model, as JSON Schema defines it: 503.0 is one, true and "503" are not."""


class RequestModel(BaseModel):
    """A JSON object that a caller sends; unknown members are errors.

    Declare its lists with `fail_fast`: pydantic makes an object for every error, and callers see only the first.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_what_is_unknown(cls, members: object) -> object:
        if isinstance(members, cls):
            return members
        known = _members(cls)
        if not isinstance(members, dict):
            raise PydanticCustomError(
                "object", "Input should be an object with the members {members}", {"members": ", ".join(known)}
            )
        if not members.keys() <= known.keys():
            raise unknown_member(next(name for name in members if name not in known), known)
        return members


@cache
def _members(model: type[BaseModel]) -> Mapping[str, None]:
    """The names of a model's members, in their order."""
    return dict.fromkeys(field.alias or name for name, field in model.model_fields.items())


def require_json(request: Request) -> None:
    """Raise Problem (415) if the body is sent as anything but JSON. One without a Content-Type is taken for JSON."""
    sent = media_type(request.headers.get("content-type", ""))
    if sent and sent != _JSON and not sent.endswith("+json"):
        detail = f"The request body is sent as {sent[:100]!r}. Send JSON with 'Content-Type: {_JSON}'."
        raise Problem("unsupported-media-type", detail, {"Accept": _JSON})


async def body_of(request: Request) -> Any:
    """The parsed JSON body.

    Raises Problem (413, 415, 422), and starlette's ClientDisconnect.
    """
    require_json(request)
    body = await request.body()
    return await in_parser(len(body) > SMALL_BODY, read_json, body)


async def in_parser(large: bool, read: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The result of `read`: in the parser's thread if what it reads is `large`, else on the event loop."""
    if not large:
        return read(*arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_parser, partial(read, *arguments, **named))


def read_json(text: bytes, what: str = "The request body") -> Any:
    """Parse JSON in UTF-8; raises Problem (413, 422), whose detail calls the text `what`.

    A name that an object has twice is a 422: parsers differ in which of the values counts (RFC 8259 4).
    """
    if len(text) > SMALL_BODY and _has_many_tokens(text):
        detail = f"{what} has more than {TOKENS_LIMIT} strings, commas and opening brackets; send it in parts."
        raise Problem("too-large", detail)
    try:
        parsed = from_json(text, allow_inf_nan=False)
        if not _may_repeat_names(text, parsed):
            return parsed
    except ValueError:
        pass
    # from_json rejects lone surrogates such as "\\ud800"; json.loads accepts them, so only that value is invalid.
    # It also shows each member, but takes five times as long.
    try:
        return json.loads(text.decode(), parse_constant=_not_a_number, object_pairs_hook=_object)
    except RecursionError:
        wrong = "it is nested too deeply"
    except ValueError as error:
        wrong = str(error)
    raise Problem("bad-request", f"{what} is not valid JSON in UTF-8: {wrong}.")


def validated(model: type[M], members: object, place: str = "body") -> M:
    """Validate parsed JSON; raises Problem (422), whose `parameter` begins with `place`."""
    try:
        return model.model_validate(members)
    except ValidationError as error:
        errors: list[Mapping[str, Any]] = [{**it, "loc": (place, *it["loc"])} for it in error.errors(include_url=False)]
    raise invalid(errors)


def read_item(model: type[M], item: object) -> M:
    """Read an item of parsed JSON. Raises Problem."""
    known = model.__pydantic_fields__
    if not isinstance(item, dict):
        required = [name for name, field in known.items() if field.is_required()]
        members = f"member{'s' * (len(required) > 1)} {' and '.join(required)}"
        raise bad_value("item", item, f"An item must be an object with the {members}.")
    if not item.keys() <= known.keys():  # pydantic would make an object for every one
        name = next(name for name in item if name not in known)
        raise unknown_item_member(name, item[name], known)
    return validated(model, item, "item")


def _has_many_tokens(text: bytes) -> bool:
    """Whether parsing the text would make more than TOKENS_LIMIT objects."""
    if text.count(b",") + text.count(b"[") + text.count(b"{") + text.count(b'"') <= TOKENS_LIMIT:
        return False
    # Once escapes are removed, every second piece between quotes is a string.
    pieces = text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"', 2 * TOKENS_LIMIT)
    outside = b"".join(pieces[::2])
    strings = len(pieces) // 2
    return strings + outside.count(b",") + outside.count(b"[") + outside.count(b"{") > TOKENS_LIMIT


def _may_repeat_names(text: bytes, parsed: object) -> bool:
    """Whether an object of the text may have a name twice; False is certain.

    If it has, then the text has more colons than what was parsed, unless colons in strings are escaped.
    """
    return text.count(b":") != to_json(parsed).count(b":") or b"\\u003" in text


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise repeated_member(name, value)
        found[name] = value
    return found


def _not_a_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
