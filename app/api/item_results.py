"""The JSON of what is decided about one item of many: an answer, or a problem in its place."""

from collections.abc import Callable
from typing import TypeVar

from app.api.encoding import encode_problem
from app.api.middleware.answer_room import HeldAnswers
from app.api.problems import Problem, bad_question, bad_value, busy, no_version, store_down, unexpected
from app.api.schemas.answers import AnswerOut
from app.bundle import NothingKnown
from app.decide import NoVersion
from app.observability.logs import REQUEST_ID
from app.question import BadQuestion
from app.redis.guarded_client import StoreDown
from app.validation import unknown_name
from robots_core.robots.access import Busy

R = TypeVar("R")


def encode_result(result: R | Exception, encode: Callable[[R], bytes]) -> bytes:
    """The JSON of an item's result: an answer, or a problem in its place."""
    return encode_problem(problem_of(result)) if isinstance(result, Exception) else encode(result)


def holding(encode: Callable[[R], bytes], held: HeldAnswers) -> Callable[[R], bytes]:
    """A function that encodes an answer and holds it until it is sent. It raises Busy if too much is held."""
    return lambda result: held.hold(encode(result))


def read_fields(names: str | None) -> tuple[str, ...] | None:
    """The members that the answers shall have, of a list with commas; None for all. Raises Problem."""
    if names is None:
        return None
    known = AnswerOut.model_fields
    wanted = set(names.split(","))
    for name in wanted.difference(known):
        raise bad_value("fields", name, unknown_name("member", name, known), "bad-request")
    return tuple(name for name in known if name in wanted)


def problem_of(error: Exception) -> Problem:
    """The problem in place of an item's answer."""
    match error:
        case Problem():
            return error
        case BadQuestion():
            return bad_question(error)
        case Busy():
            return busy(error, retry_after=error.retry_after)
        case NothingKnown():
            return Problem(404, "no-file", str(error))
        case NoVersion():
            return no_version(error)
        case StoreDown():
            return store_down(error, retry_after=1)
        case _:
            return unexpected(REQUEST_ID.get() or "")
