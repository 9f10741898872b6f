"""Read the questions of requests: one item, or many. `app.decisions.question` has their parameters."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from fastapi import Request

from app.api.caller import caller_of
from app.api.json_bodies import read_item
from app.api.problems import Problem
from app.api.services import services_of
from app.decisions.answer_all import failure
from app.decisions.evaluate import Question
from app.decisions.question import WAIT, Asking, BadQuestion, QuestionIn, target_from
from app.decisions.shared_answers import Sharing
from app.loop.background import as_value
from robots_core.origin import BadUrl, read_target

Asked = TypeVar("Asked")
Item = TypeVar("Item")


def asking(request: Request, max_age: float | None = None, wait: float = WAIT) -> Asking:
    """What the questions of a request take from it."""
    services, caller = services_of(request), caller_of(request.scope)
    return Asking(services.agents(), services.now, caller.policy(services.policy), caller.id, max_age, wait)


def question_of(item: object, asking: Asking) -> Question:
    """Read the question of an item of parsed JSON. Raises Problem and BadQuestion."""
    plain = _plain(item)
    if plain is None:
        return read_item(QuestionIn, item).question(asking)
    rest = asking.plain(*plain)
    return Question(target_from(plain[0]), *rest)


def _plain(item: object) -> tuple[str, str] | None:
    """The URL and the agent of an item that has nothing else, like most, so that there is nothing to validate."""
    if type(item) is dict and len(item) == 2:
        url, agent = item.get("url"), item.get("agent")
        if type(url) is str and type(agent) is str:
            return url, agent
    return None


def read_all(items: Iterable[Item], read: Callable[[Item], Asked]) -> Iterator[tuple[int, Asked | Exception]]:
    """What `read` makes of each item, with its number. An item that it cannot read is an error in its place."""
    for number, item in enumerate(items):
        result: Asked | Exception
        try:
            result = read(item)
        except Exception as error:  # noqa: BLE001 - one that is not expected is logged, and fails this item alone
            result = unread(error)
        yield number, result


def read_sharing(
    items: Iterable[object], asking: Asking, sharing: Sharing
) -> Iterator[tuple[int, Question | Exception | None]]:
    """The questions of items, as of read_all; None for each item that `sharing` answers."""
    return read_all(enumerate(items), partial(_unless_answered, asking, sharing))


def _unless_answered(asking: Asking, sharing: Sharing, numbered: tuple[int, object]) -> Question | None:
    number, item = numbered
    plain = _plain(item)
    if plain is None:
        return question_of(item, asking)
    url, agent = plain
    try:
        target = read_target(url)
    except BadUrl:
        return question_of(item, asking)  # says what is wrong; of the agent first
    return None if sharing.is_answered(number, target, agent) else Question(target, *asking.plain(url, agent))


def unread(error: Exception) -> Exception:
    """The error of an item that could not be read, as its result. One that is not expected is logged."""
    return as_value(error) if isinstance(error, Problem | BadQuestion) else failure(error)
