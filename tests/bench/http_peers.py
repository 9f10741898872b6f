"""The peers of `make bench NAME=http`: applications behind the same server, in their own processes."""

import importlib
import json
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.answers.schema import AnswerOut
from tests.bench.bodies import body

PATIENCE_SECONDS = 300
"""How long a connection may wait for its next request."""


def bare(answer: bytes) -> ASGIApp:
    """The minimum: the same bytes for every request."""
    headers = [(b"content-length", b"%d" % len(answer)), (b"content-type", b"application/json")]

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": answer})

    return app


def constant(answer: bytes) -> ASGIApp:
    """A FastAPI route with the two parameters of `GET /v1/allowed`, which returns a constant model."""
    app = FastAPI()
    model = AnswerOut.model_validate_json(answer)

    @app.get("/v1/allowed")
    async def allowed(url: str, agent: str) -> AnswerOut:
        return model

    return app


def protego(sizes: bytes) -> ASGIApp:
    """A Starlette route that answers a batch from files parsed by protego, by the port of their origin.

    `sizes` are the numbers of rules by port, as JSON. The answer to an item says whether it is allowed, and the delay.
    """
    parse = importlib.import_module("protego").Protego.parse
    by_port = {port: parse(body(rules).decode()) for port, rules in json.loads(sizes).items()}
    by_origin: dict[str, Any] = {}

    def answer(item: dict[str, Any]) -> dict[str, Any]:
        url, agent = item["url"], item["agent"]
        origin = url[: url.index("/", 8)]
        file = by_origin.get(origin)
        if file is None:
            file = by_origin[origin] = by_port[origin.rpartition(":")[2]]
        return {"url": url, "allowed": file.can_fetch(url, agent), "crawl_delay": file.crawl_delay(agent)}

    async def batch(request: Request) -> Response:
        answers = [answer(item) for item in (await request.json())["items"]]
        return Response(json.dumps({"answers": answers}), media_type="application/json")

    return Starlette(routes=[Route("/v1/allowed", batch, methods=["POST"])])


def main(name: str, port: int) -> None:
    """Serve one of them like the service; its configuration comes on standard input."""
    make = {"bare": bare, "constant": constant, "protego": protego}[name]
    app = make(sys.stdin.buffer.read())
    # A slow peer keeps connections waiting, which are not idle for that.
    uvicorn.run(
        app, host="127.0.0.1", port=port, access_log=False, log_level="warning", timeout_keep_alive=PATIENCE_SECONDS
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
