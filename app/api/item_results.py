"""The JSON of what is decided about one item of many: an answer, or a problem in its place."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from app.api.answers.schema import AnswerOut
from app.api.middleware.answer_room import HeldAnswers
from app.api.problems import bad_value, problem_of
from app.files.validation import unknown_name

R = TypeVar("R")


def encode_result(result: R | Exception, encode: Callable[[R], bytes]) -> bytes:
    """The JSON of an item's result: an answer, or an object with the member `problem`, which an answer never has."""
    if isinstance(result, Exception):
        return msgspec.json.encode({"problem": msgspec.Raw(problem_of(result).text)})
    return encode(result)


def holding(encode: Callable[[R], bytes], held: HeldAnswers) -> Callable[[R], bytes]:
    """A function that encodes an answer and holds it until it is sent. It raises Busy if too much is held."""
    return lambda result: held.hold(encode(result))


def read_fields(names: str | None) -> Sequence[str] | None:
    """The members that the answers shall have, in their order there, of a list with commas; None for all.

    Raises Problem.
    """
    if names is None:
        return None
    known = AnswerOut.model_fields
    wanted = set(names.split(","))
    for name in wanted.difference(known):
        raise bad_value("fields", name, unknown_name("member", name, known), "bad-request")
    return tuple(name for name in known if name in wanted)
