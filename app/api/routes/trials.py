"""`POST /v1/test`: decide by a pasted robots.txt, or by a simulated outcome of fetching it."""

import json
import logging
from datetime import datetime
from functools import partial
from typing import NamedTuple

from fastapi import Request, Response
from pydantic import ConfigDict, Field

from app.api.caller import caller_of
from app.api.json_bodies import in_parser
from app.api.problems import Problem, documented, unexpected
from app.api.routing import api_router
from app.api.services import services_of
from app.api.trials.observation import SentFile, bad_file
from app.api.trials.rows import Trial, TrialOut, trial_json
from app.api.trials.what_if import SimulatedOutcomeIn, rechecks_of
from app.decisions.cached_files import Models
from app.decisions.question import (
    AgentText,
    DialectName,
    InstantText,
    Purposes,
    UrlText,
    agents_from,
    asked_policy,
    dialect_from,
    instant_from,
    target_from,
)
from app.loop.helpers import TooMuchWork
from app.observability.logs import REQUEST_ID
from robots_core.agents.directory import AgentDirectory
from robots_core.purposes.policy import PurposePolicy
from robots_core.robots.agents import Agent

ROWS_LIMIT = 10_000
"""Rows of the largest test: URLs times agents times dialects."""

EXPLAINED_LIMIT = 100
"""Rows of the largest test with `explain`, which may take 400 KB each."""

FEW_NAMES = 64
"""URLs and agents of a test that are read on the event loop, in a millisecond or two."""

ROW_SIZE, LONG_ROW_SIZE = 64, 512
"""A row takes as long as so many bytes of a file; the second is for one that is explained, or under an outcome."""

_log = logging.getLogger(__name__)

router = api_router("decisions")


class TrialIn(SentFile):
    """A robots.txt to test, as text, or as `robots_base64` if its exact bytes matter.

    With an `outcome`, every fetch of it is simulated to end so, and the file, if any, is the copy cached before.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    truncated: bool = Field(
        False, description="Whether it is the part that is read of a longer file, as `text` of `GET /v1/robots` may be."
    )
    urls: list[UrlText] = Field(min_length=1, max_length=ROWS_LIMIT, fail_fast=True)
    agents: list[AgentText] = Field(
        min_length=1,
        max_length=ROWS_LIMIT,
        fail_fast=True,
        description="Product tokens or User-Agent headers; `@ai-training` is every known crawler of that category.",
    )
    dialects: list[DialectName] = Field(
        [], max_length=16, fail_fast=True, description="A row for each of them; by default, the agent's own dialect."
    )
    at: InstantText | None = Field(
        None, description="RFC 3339 instant at which rates and the outcome are evaluated; by default now."
    )
    explain: bool = Field(
        False, description="Whether rows say how the group was found and which rules matched; for at most 100 rows."
    )
    groups: bool = Field(
        False, description="Whether the answer has the groups of the file, as `GET /v1/robots` has them."
    )
    purpose: Purposes = None
    enforce: bool | None = Field(
        None, description="Whether a purpose that the file refuses closes a page; by default as for the caller."
    )
    outcome: SimulatedOutcomeIn | None = Field(None, description="The simulated outcome of every fetch of the file.")

    def policy(self, caller: PurposePolicy) -> PurposePolicy | None:
        """The purposes of the test; `caller` is the policy of who runs it."""
        policy = asked_policy(self.purpose, caller)
        return policy if policy is None or self.enforce is None else policy._replace(enforce=self.enforce)

    def body(self) -> bytes | None:
        """The file's bytes; None if an outcome is simulated without a file. Raises Problem."""
        body = super().body()
        if body is None and self.outcome is None:
            raise bad_file("Send robots, robots_base64 or outcome.")
        return body


@router.post("/v1/test", response_model=TrialOut, responses={**documented(413, 422, 503)})
async def test(request: Request, test: TrialIn) -> Response:
    """Decide by a pasted robots.txt: one row per URL, agent and dialect. Nothing is fetched or stored.

    With `outcome`, decide as the service would if every fetch of the file had ended so for that long. `explain` is for
    at most 100 rows.
    """
    services = services_of(request)
    conditions = Conditions(services.agents(), services.now(), services.models, services.forbidden)
    body, policy = test.body(), test.policy(caller_of(request.scope).policy(services.policy))
    trial = await in_parser(len(test.urls) + len(test.agents) > FEW_NAMES, read, test, body, conditions, policy)
    gzipped = _takes_gzip(request)
    work = partial(trial_json, gzipped=gzipped)
    arguments = trial, body or b"", unexpected(REQUEST_ID.get() or "").text.encode()
    long_rows = trial.explained or trial.outcome is not None
    size = len(body or b"") + trial.rows * (LONG_ROW_SIZE if long_rows else ROW_SIZE)
    try:
        found = await services.long_work.run(request, size, work, *arguments)
    except TooMuchWork as error:
        raise Problem("too-large", f"{error.limit}; send a smaller file, or fewer rows.") from None
    failure, _, content = found.partition(b"\n")
    if failure != b'""':
        _log.error("a row of a test failed\n%s", json.loads(failure))
    coding = {"Content-Encoding": "gzip"} if gzipped else {}
    return Response(content, media_type="application/json", headers={**coding, "Vary": "Accept-Encoding"})


def _takes_gzip(request: Request) -> bool:
    """Whether the caller decodes gzip (RFC 9110 12.5.3)."""
    codings = (it.partition(";") for it in request.headers.get("accept-encoding", "").lower().split(","))
    weights = {name.strip(): weight.replace(" ", "") for name, _, weight in codings}
    return weights.get("gzip", "q=0").rstrip("0.") != "q="


class Conditions(NamedTuple):
    """What a test takes from the service.

    `known` are the crawlers that are known by name. `forbidden`: whether a 401 or 403 closes the site.
    """

    known: AgentDirectory
    now: datetime
    models: Models
    forbidden: bool


def read(test: TrialIn, body: bytes | None, conditions: Conditions, policy: PurposePolicy | None) -> Trial:
    """Read a test; `policy` is the test's. Raises Problem and BadQuestion."""
    targets = [target_from(url, f"urls[{number}]") for number, url in enumerate(test.urls)]
    readers: list[tuple[Agent, str]] = []
    for number, name in enumerate(test.agents):
        for agent in agents_from(name, conditions.known, f"agents[{number}]"):
            for place, dialect in enumerate(test.dialects or [None]):
                readers.append((agent, dialect_from(dialect, agent, f"dialects[{place}]").name))
        count = len(targets) * len(readers)
        if count > ROWS_LIMIT:
            wanted = f"{len(targets)} URLs and {len(readers)} pairs of agent and dialect make {count} rows or more"
            raise Problem("too-many-rows", f"{wanted}; send at most {ROWS_LIMIT}.", parameter="urls")
    outcome = None
    if test.outcome is not None:
        rechecks = rechecks_of(targets, (agent for agent, _ in readers), conditions.models)
        outcome = test.outcome.outcome(body, rechecks, truncated=test.truncated)
    at = instant_from(test.at) or conditions.now
    trial = Trial(
        targets,
        readers,
        at,
        policy,
        outcome,
        truncated=test.truncated,
        explained=test.explain,
        forbidden=conditions.forbidden,
        grouped=test.groups,
    )
    if trial.explained and trial.rows > EXPLAINED_LIMIT:
        detail = f"This test has {trial.rows} rows; with explain, send at most {EXPLAINED_LIMIT}."
        raise Problem("too-many-rows", detail, parameter="urls")
    return trial
