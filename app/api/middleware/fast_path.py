"""The short way to the answers that memory has ready: around FastAPI, which costs more than they do."""

from time import monotonic
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.encoding import Renderer
from app.api.middleware.http_caching import NO_STORE, cache_control
from app.api.parameters import AGENTS, MOST_AGE, MOST_WAIT, WAIT
from app.api.params import agent_from, dialect_from, instant_from, target_from
from app.api.problems import Problem
from app.api.routes import allowed, batch
from app.decide import Decider
from app.evaluate import Question


class FastPath:
    """Answers a plain `GET /v1/allowed` from memory, and leaves to the application whatever is not as simple.

    That is every question that has to wait, and every one that is refused: what a parameter may be, and what is said
    of one that is wrong, stands in the route and nowhere else. `POST /v1/allowed` reads its body itself, and is the
    same function here and there.
    """

    def __init__(self, app: ASGIApp, decider: Decider, renderer: Renderer) -> None:
        self._app = app
        self._decider = decider
        self._renderer = renderer
        self._allowed, self._batch = allowed.router.routes[0], batch.router.routes[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == allowed.PATH:
            if scope["method"] == "POST":
                await self._answer_batch(scope, receive, send)
                return
            if scope["method"] == "GET" and await self._answered(scope, send):
                return
        await self._app(scope, receive, send)

    async def _answered(self, scope: Scope, send: Send) -> bool:
        question = plain_question(scope["query_string"])
        started = monotonic()
        answer = None if question is None else self._decider.decide_if_cached(question)
        if answer is None:
            return False
        self._decider.count((answer,), monotonic() - started)
        scope["route"] = self._allowed  # requests are counted by it
        rendered = self._renderer.render(answer)
        body = rendered.text.encode()
        headers = [
            (b"content-length", b"%d" % len(body)),
            (b"content-type", b"application/json"),
            (b"cache-control", cache_control(answer, rendered.until).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return True

    async def _answer_batch(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self._batch
        try:
            response = await batch.batch(Request(scope, receive))
        except Problem as problem:
            response = problem.response()
        response.headers.setdefault("Cache-Control", NO_STORE)
        await response(scope, receive, send)


def plain_question(query: bytes) -> Question | None:
    """The question of a query string where it is plain and right; None leaves it to the route, and what is wrong too.

    Read as Starlette reads it: UTF-8 in escapes, and octets that are none replaced.
    """
    values: dict[str, str] = {}
    agents: list[str] = []
    for part in query.decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if "+" in value:
            value = value.replace("+", " ")
        if "%" in value:
            value = unquote(value, errors="replace")
        if name == "agent":
            agents.append(value)
        elif name in _PLAIN and name not in values:
            values[name] = value
        else:
            return None
    if "url" not in values or not 0 < len(agents) <= AGENTS:
        return None
    try:
        agent = agent_from(agents)
        return Question(
            target=target_from(values["url"]),
            agent=agent,
            dialect=dialect_from(values.get("dialect"), agent),
            at=instant_from(values.get("at")),
            max_age=_whole(values["max_age"], MOST_AGE) if "max_age" in values else None,
            wait=_whole(values["wait"], MOST_WAIT) if "wait" in values else WAIT,
        )
    except (Problem, _NotPlain):
        return None


_PLAIN = frozenset({"url", "dialect", "at", "max_age", "wait"})


class _NotPlain(Exception):
    """A value of a query that only the route can judge."""


def _whole(text: str, most: int) -> int:
    # Numbers are pydantic's to read; these are the ones that everybody reads alike.
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= most):
        raise _NotPlain
    return int(text)
