"""`POST /v1/test`: the same engine over a robots.txt that is pasted in."""

import base64
import binascii

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.problems import Problem, bad_value, documented
from app.api.reading import agent_from, dialect_from, instant_from, target_from
from app.api.shapes import TrialOut
from app.api.wire import Case, trial_out
from app.robots.dialect import RobotsTxt, judge_file

TRIAL_ROWS = 10_000
"""Rows of the largest trial: URLs times agents times dialects."""

EXPLAINED_ROWS = 500
"""The same where every row is explained, for which every rule of the file is tried."""

router = APIRouter(tags=["decisions"])


class Trial(BaseModel):
    """A robots.txt to try: as text, or as `robots_base64` where its bytes matter."""

    model_config = ConfigDict(extra="forbid")

    robots: str | None = None
    robots_base64: str | None = None
    urls: list[str] = Field(min_length=1, max_length=TRIAL_ROWS)
    agents: list[str] = Field(min_length=1, max_length=TRIAL_ROWS)
    dialects: list[str] = Field([], max_length=16, description="Every one of them for every row; none: by agent.")
    at: str | None = None
    explain: bool = False

    def body(self) -> bytes:
        """The file's bytes."""
        if (self.robots is None) == (self.robots_base64 is None):
            raise Problem(422, "bad-request", "Either robots or robots_base64 holds the file: one, and not both.")
        if self.robots_base64 is None:
            return (self.robots or "").encode("utf-8", "surrogatepass")
        try:
            return base64.b64decode(self.robots_base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise bad_value("robots_base64", self.robots_base64, f"robots_base64 is no base64: {error}") from None


@router.post("/v1/test", response_model=TrialOut, responses={**documented(413, 422)})
def test(request: Request, trial: Trial) -> Response:
    """What a pasted robots.txt says: a row per URL, agent and dialect. Nothing is fetched, and nothing is kept."""
    # Not a coroutine: it runs in a thread, so that a file and questions made to be slow hold up nobody else's answer.
    targets = [target_from(url, f"urls[{at}]") for at, url in enumerate(trial.urls)]
    agents = [agent_from([name], f"agents[{at}]") for at, name in enumerate(trial.agents)]
    readers = [
        (agent, dialect_from(name, agent, f"dialects[{at}]"))
        for agent in agents
        for at, name in enumerate(trial.dialects or [None])
    ]
    most = EXPLAINED_ROWS if trial.explain else TRIAL_ROWS
    if len(targets) * len(readers) > most:
        detail = f"{len(targets)} URLs for {len(readers)} agents and dialects make too many rows: {most} at most."
        raise Problem(422, "too-many-rows", detail)
    robots = RobotsTxt(trial.body())
    at = instant_from(trial.at) or request.app.state.now()
    cases = [
        Case(target, agent, dialect, judge_file(robots, dialect, agent, target.path))
        for target in targets
        for agent, dialect in readers
    ]
    answer = trial_out(robots, cases, at, explained=trial.explain)
    content = answer.model_dump_json(exclude=None if trial.explain else {"rows": {"__all__": {"explanation"}}})
    return Response(content, media_type="application/json")
