"""`POST /v1/test`: the same engine over a robots.txt that is pasted in, and over a fetch of it that is pretended."""

import base64
import binascii
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from app.api.json_bodies import JsonRoute, RequestModel
from app.api.long_work import Allowance, LongWork, separated
from app.api.params import agent_from, dialect_from, instant_from, target_from
from app.api.problems import Problem, bad_value, documented
from app.api.schemas.answers import WarningOut
from app.api.serialize import warnings_out
from app.api.services import services_of
from app.api.test_rows import Asked, SimulatedOut, Tables, TestOut, TestRowOut
from app.api.what_if import SimulatedOutcomeIn, Simulation
from app.decide import Models
from app.origin import Target
from app.robots.agents import Agent
from app.robots.dialects import Dialect
from app.robots.robots_txt import RobotsTxt

TRIAL_ROWS = 10_000
"""Rows of the largest trial: URLs times agents times dialects."""

router = APIRouter(tags=["decisions"], route_class=JsonRoute)


class TestIn(RequestModel):
    """A robots.txt to try: as text, or as `robots_base64` where its bytes matter.

    With an `outcome`, fetching it is pretended to come to that, and the file is what was held before, or nothing is.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    robots: str | None = None
    robots_base64: str | None = None
    urls: list[str] = Field(min_length=1, max_length=TRIAL_ROWS, fail_fast=True)
    agents: list[str] = Field(min_length=1, max_length=TRIAL_ROWS, fail_fast=True)
    dialects: list[str] = Field(
        [], max_length=16, fail_fast=True, description="Every one of them for every row; none: by agent."
    )
    at: str | None = Field(None, description="RFC 3339 instant that rates, and what the outcome leads to, are seen at.")
    explain: bool = False
    outcome: SimulatedOutcomeIn | None = Field(
        None, description="What to pretend that every fetch of the file comes to."
    )

    def body(self) -> bytes | None:
        """The file's bytes; None where an outcome is pretended and no file was held."""
        if self.robots is not None and self.robots_base64 is not None:
            raise Problem(422, "bad-robots", "Either robots or robots_base64 holds the file, and not both.")
        if self.robots is not None:
            return self.robots.encode("utf-8", "surrogatepass")
        if self.robots_base64 is None:
            if self.outcome is None:
                raise Problem(422, "bad-robots", "One of robots, robots_base64 and outcome is needed.")
            return None
        try:
            return base64.b64decode(self.robots_base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise bad_value("robots_base64", self.robots_base64, f"robots_base64 is no base64: {error}") from None


@router.post("/v1/test", response_model=TestOut | SimulatedOut, responses={**documented(413, 422, 503)})
async def test(request: Request, trial: TestIn) -> Response:
    """What a pasted robots.txt says: a row per URL, agent and dialect. Nothing is fetched, and nothing is kept.

    With `outcome`, what the service would say if every fetch of the file had come to that for so long.
    """
    state = services_of(request)
    now, models, forbidden = state.now(), state.models, state.forbidden
    long_work: LongWork = state.long_work
    body = trial.body()
    robots = RobotsTxt(body or b"")
    warnings = await long_work.about_file(request, len(body or b""), partial(warnings_out, robots))
    file = PastedFile(body, robots, warnings)
    return long_work.answer(lambda allowance: tried(trial, file, now, models, allowance, forbidden=forbidden))


class PastedFile(NamedTuple):
    """The file that is tried: its bytes, None for none, what was read of them, and what its owner could do better."""

    body: bytes | None
    robots: RobotsTxt
    warnings: Sequence[WarningOut]

    @classmethod
    def read(cls, body: bytes | None) -> "PastedFile":
        """Read it at once, however long that takes."""
        robots = RobotsTxt(body or b"")
        return cls(body, robots, warnings_out(robots))


def tried(
    trial: TestIn, file: PastedFile, now: datetime, models: Models, allowance: Allowance, *, forbidden: bool
) -> Iterator[str]:
    """The answer, a piece with each step; raises Problem. `models` and `forbidden` are the service's own settings."""
    body, robots, warnings = file
    questions = yield from _questions(trial)
    at = instant_from(trial.at) or now
    tables = Tables(robots, at, explained=trial.explain)
    if trial.outcome is None:
        decided = _decided(questions, robots, tables)
    else:
        pretence = Simulation(trial.outcome, body, at, models, robots, forbidden=forbidden)
        yield from pretence.prepare(questions)
        decided = (pretence.row(asked, tables) for asked in questions)
    left_out = None if trial.explain else {"explanation"}
    yield '{"rows":['
    told = 0
    collected = 0
    for row in decided:
        text = row.model_dump_json(exclude=left_out)
        yield text if told == 0 else f",{text}"
        told += 1
        allowance.room -= len(text) + tables.size - collected
        collected = tables.size
        if allowance.is_spent():
            break
    yield "],"
    yield from tables.texts()
    yield ',"warnings":['
    yield from separated(it.model_dump_json() for it in warnings)
    yield f'],"left_out":{len(questions) - told}}}'


def _questions(trial: TestIn) -> Generator[str, None, Sequence[Asked]]:
    """A question per row, read with a step for each of its parts; raises Problem."""
    targets: list[Target] = []
    for place, url in enumerate(trial.urls):
        targets.append(target_from(url, f"urls[{place}]"))
        yield ""
    readers: list[tuple[Agent, Dialect]] = []
    for place, name in enumerate(trial.agents):
        agent = agent_from([name], f"agents[{place}]")
        for number, dialect in enumerate(trial.dialects or [None]):
            readers.append((agent, dialect_from(dialect, agent, f"dialects[{number}]")))
        yield ""
    if len(targets) * len(readers) > TRIAL_ROWS:
        detail = f"{len(targets)} URLs for {len(readers)} agents and dialects make too many rows: {TRIAL_ROWS} at most."
        raise Problem(422, "too-many-rows", detail)
    return [Asked(target, agent, dialect) for target in targets for agent, dialect in readers]


def _decided(questions: Iterable[Asked], robots: RobotsTxt, tables: Tables) -> Iterator[TestRowOut]:
    for asked in questions:
        yield tables.row(asked, robots.judge(asked.dialect, asked.agent, asked.target.path))
