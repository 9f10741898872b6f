"""The JSON of what is decided about one item of many: an answer, or a problem in its place."""

from collections.abc import Callable

from app.api.encoding import AnswerEncoder, encode_problem
from app.api.middleware.answer_room import HeldAnswers
from app.api.problems import Problem, bad_question, busy, no_version, store_down, unexpected
from app.decide import NoVersion
from app.evaluate import Decision
from app.observability.logs import REQUEST_ID
from app.question import BadQuestion
from app.redis.guarded_client import StoreDown
from robots_core.robots.access import Busy


def encode_result(result: Decision | Exception, encode: Callable[[Decision], bytes]) -> bytes:
    """The JSON of an item's result: an answer, or a problem in its place."""
    return encode(result) if isinstance(result, Decision) else encode_problem(problem_of(result))


def holding(encoder: AnswerEncoder, held: HeldAnswers) -> Callable[[Decision], bytes]:
    """A function that encodes an answer and holds it until it is sent. It raises Busy if too much is held."""
    return lambda decision: held.hold(encoder.encode(decision))


def problem_of(error: Exception) -> Problem:
    """The problem in place of an item's answer."""
    match error:
        case Problem():
            return error
        case BadQuestion():
            return bad_question(error)
        case Busy():
            return busy(error, retry_after=error.retry_after)
        case NoVersion():
            return no_version(error)
        case StoreDown():
            return store_down(error, retry_after=1)
        case _:
            return unexpected(REQUEST_ID.get() or "")
