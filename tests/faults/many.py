"""The three ways to ask many questions in one request."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tests.api.service import Service

Items: TypeAlias = Sequence[Mapping[str, Any]]
Answers: TypeAlias = Sequence[Mapping[str, Any]]


async def batch(service: Service, items: Items) -> Answers:
    answers: Answers = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
    return answers


async def stream(service: Service, items: Items) -> Answers:
    headers = {"Content-Type": "application/x-ndjson"}
    lines = "".join(json.dumps(item) + "\n" for item in items)
    response = await service.client.post("/v1/allowed", content=lines, headers=headers)
    return [json.loads(line) for line in response.text.splitlines()]


async def permits(service: Service, items: Items) -> Answers:
    answers: Answers = (await service.client.post("/v1/permits/batch", json={"items": items})).json()["permits"]
    return answers


WAYS: Sequence[Callable[[Service, Items], Awaitable[Answers]]] = (batch, stream, permits)
