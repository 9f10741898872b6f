"""JSON as routes read it that do so by themselves: there, an item that is wrong fails alone."""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import from_json

from app.api.problems import Problem, invalid

M = TypeVar("M", bound=BaseModel)


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole: Final = BeforeValidator(_whole)
"""Annotates whole numbers of strict models, as JSON Schema understands them: 503.0 is one, true and "503" are none."""


def read_json(octets: bytes, what: str = "The request's body") -> Any:
    """What JSON in UTF-8 says; raises Problem (422), which calls it `what`."""
    try:
        return from_json(octets, allow_inf_nan=False)
    except ValueError:
        pass
    # Half a surrogate pair, as "\\ud800", is a fault of one value, and not of all that stand beside it.
    try:
        return json.loads(octets.decode(), parse_constant=_no_number)
    except RecursionError:
        wrong = "it lies in itself too deep"
    except ValueError as error:
        wrong = str(error)
    raise Problem(422, "bad-request", f"{what} is no JSON in UTF-8: {wrong}.")


def validated(model: type[M], members: object, place: str = "body") -> M:
    """What JSON said, as the model has it; raises Problem (422), whose `parameter` begins with `place`."""
    try:
        return model.model_validate(members)
    except ValidationError as error:
        errors: list[Mapping[str, Any]] = [{**it, "loc": (place, *it["loc"])} for it in error.errors(include_url=False)]
    raise invalid(errors)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
