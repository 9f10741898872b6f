"""`GET /v1/allowed` and `POST /v1/test`: one engine, over the file that is held and over one that is pasted."""

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.problems import Problem, bad_value, documented
from app.api.reading import agent_from, dialect_from, instant_from, target_from
from app.api.shapes import AnswerOut, TrialOut
from app.api.wire import Case, answer_out, trial_out
from app.decide import Decider, Question
from app.robots.dialect import RobotsTxt, judge_file

TRIAL_ROWS = 10_000
"""Rows of the largest trial: URLs times agents times dialects."""

EXPLAINED_ROWS = 500
"""The same where every row is explained, for which every rule of the file is tried."""

router = APIRouter(tags=["decisions"])


@router.get("/v1/allowed", response_model=AnswerOut, responses={**documented(422, 503)})
async def allowed(
    request: Request,
    url: Annotated[str, Query(description="The page's URL, absolute, http or https, at most 16 KiB.")],
    agent: Annotated[
        list[str],
        Query(
            min_length=1,
            max_length=16,
            description="A product token or a whole User-Agent header; given several times, the first with a group.",
        ),
    ],
    dialect: Annotated[str | None, Query(description="rfc9309, google, seznam, draft1996 or v2; by agent.")] = None,
    at: Annotated[str | None, Query(description="RFC 3339 instant that rates are asked for; now.")] = None,
    max_age: Annotated[float | None, Query(ge=0, le=1e9, description="Seconds: the oldest copy that will do.")] = None,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds that a cold fetch may hold the answer.")] = 10.0,
    explain: Annotated[bool, Query(description="Tell every rule that matched, and how the group was found.")] = False,
) -> Response:
    """Whether `agent` may fetch `url` now, what decided, and how fast it may go."""
    who = agent_from(agent)
    question = Question(
        target=target_from(url),
        agent=who,
        dialect=dialect_from(dialect, who),
        at=instant_from(at),
        max_age=max_age,
        wait=wait,
    )
    decider: Decider = request.app.state.decider
    answer = answer_out(await decider.ask(question), explained=explain)
    return _json(answer.model_dump_json(exclude=None if explain else {"explanation"}))


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
    return _json(answer.model_dump_json(exclude=None if trial.explain else {"rows": {"__all__": {"explanation"}}}))


def _json(content: str) -> Response:
    return Response(content, media_type="application/json")
