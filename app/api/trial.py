"""`POST /v1/test`: the same engine over a robots.txt that is pasted in, and over a fetch of it that is pretended."""

import base64
import binascii
from datetime import datetime

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from app.api.json_bodies import JsonRoute, RequestModel
from app.api.pretending import Asked, Pretence, PretendedOut, PretendedOutcomeIn
from app.api.problems import Problem, bad_value, documented
from app.api.reading import agent_from, dialect_from, instant_from, target_from
from app.api.shapes import TrialOut
from app.api.wire import Case, trial_out
from app.decide import Models
from app.robots.dialect import RobotsTxt, judge_file

TRIAL_ROWS = 10_000
"""Rows of the largest trial: URLs times agents times dialects."""

EXPLAINED_ROWS = 500
"""The same where every row is explained, for which every rule of the file is tried."""

router = APIRouter(tags=["decisions"], route_class=JsonRoute)


class TrialIn(RequestModel):
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
    outcome: PretendedOutcomeIn | None = Field(
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


@router.post("/v1/test", response_model=TrialOut | PretendedOut, responses={**documented(413, 422)})
def test(request: Request, trial: TrialIn) -> Response:
    """What a pasted robots.txt says: a row per URL, agent and dialect. Nothing is fetched, and nothing is kept.

    With `outcome`, what the service would say if every fetch of the file had come to that for so long.
    """
    # Not a coroutine: it runs in a thread, so that a file and questions made to be slow hold up nobody else's answer.
    state = request.app.state
    answer = tried(trial, state.now(), state.models, forbidden=state.forbidden)
    return Response(as_json(trial, answer), media_type="application/json")


def as_json(trial: TrialIn, answer: TrialOut | PretendedOut) -> str:
    """The answer, without explanations where they were not asked for."""
    return answer.model_dump_json(exclude=None if trial.explain else {"rows": {"__all__": {"explanation"}}})


def tried(trial: TrialIn, now: datetime, models: Models, *, forbidden: bool) -> TrialOut | PretendedOut:
    """The answer; raises Problem. `models` and `forbidden` are the service's own settings."""
    targets = [target_from(url, f"urls[{at}]") for at, url in enumerate(trial.urls)]
    agents = [agent_from([name], f"agents[{at}]") for at, name in enumerate(trial.agents)]
    readers = [
        (agent, dialect_from(name, agent, f"dialects[{at}]"))
        for agent in agents
        for at, name in enumerate(trial.dialects or [None])
    ]
    most = EXPLAINED_ROWS if trial.explain or trial.outcome is not None else TRIAL_ROWS
    if len(targets) * len(readers) > most:
        detail = f"{len(targets)} URLs for {len(readers)} agents and dialects make too many rows: {most} at most."
        raise Problem(422, "too-many-rows", detail)
    body = trial.body()
    robots = RobotsTxt(body or b"")
    at = instant_from(trial.at) or now
    questions = [Asked(target, agent, dialect) for target in targets for agent, dialect in readers]
    if trial.outcome is None:
        cases = [Case(*asked, judge_file(robots, asked.dialect, asked.agent, asked.target.path)) for asked in questions]
        return trial_out(robots, cases, at, explained=trial.explain)
    pretence = Pretence(trial.outcome, body, at, models, robots, forbidden=forbidden)
    return pretence.answer(questions, explained=trial.explain)
