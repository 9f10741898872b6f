"""The body of `POST /v1/test`, and the trial that it asks for; the command `test` has the same.

With a simulated outcome, it is what the service would answer if every fetch had this outcome.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import ConfigDict, Field

from app.api.json_bodies import JsonInteger, RequestModel
from app.api.problems import Problem, bad_value
from app.api.trials.observation import SentFile, bad_file
from app.api.trials.rows import Trial
from app.cache.freshness import Recheck
from app.cache.outage import LONGEST_OUTAGE
from app.cache.recheck import Model
from app.decisions.cached_files import Models
from app.decisions.pasted import Rechecks, SimulatedOutcome
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
from app.fetch.response import REDIRECTS, read_observed
from robots_core.agents.directory import AgentDirectory
from robots_core.origin import Origin, Target
from robots_core.purposes.policy import PurposePolicy
from robots_core.robots.access import (
    BODY_LIMIT,
    Blocked,
    Cause,
    Fetched,
    Successful,
    Unavailable,
    Unreachable,
    readable_part,
)
from robots_core.robots.agents import Agent
from robots_core.robots.judge import recognise_challenge
from robots_core.times import read_seconds

ROWS_LIMIT = 10_000
"""Rows of the largest test: URLs times agents times dialects."""

EXPLAINED_LIMIT = 100
"""Rows of the largest test with `explain`, which may take 400 KB each."""

SimulatedCause = Literal[
    "timeout",
    "dns",
    "tls",
    "connection",
    "proxy",
    "bad_response",
    "challenge",
    "redirect_loop",
    "cookie_loop",
    "blocked_address",
]

SIMULATED_CAUSES: tuple[str, ...] = get_args(SimulatedCause)

OUTAGES = 8
"""Pairs of origin and recheck model that one test may simulate."""

FIRST_VISIT = 1.0
"""Visits a day of an origin without visits so far."""


class SimulatedOutcomeIn(RequestModel):
    """The outcome of every fetch of the file: a `status`, or a `cause` if there is no response; and for how long.

    The pasted robots is the copy cached before, or with a 2xx status what the origin serves.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"status": 503, "for": "3d"}, {"cause": "timeout", "had_copy": False}]},
    )

    status: Annotated[int | None, JsonInteger] = Field(
        None, ge=200, le=599, description="Status that the origin answers with."
    )
    cause: SimulatedCause | None = Field(None, description="Why there is no file, if the status does not say so.")
    retry_after: Annotated[int | None, JsonInteger] = Field(
        None, ge=0, le=10**9, description="Retry-After in seconds, of 429 and 5xx."
    )
    lasting: int | float | str = Field(
        0,
        alias="for",
        description='How long it has lasted since the first such fetch: seconds, or a duration such as "90m", "12h", '
        f'"3d", "2w"; at most {LONGEST_OUTAGE / 86_400:.0f} days.',
    )
    had_copy: bool = Field(True, description="Whether the pasted robots was cached before it began.")

    def seconds(self) -> float:
        """How long it has lasted; raises Problem if that is invalid."""
        seconds = self.lasting if not isinstance(self.lasting, str) else read_seconds(self.lasting)
        if seconds is None or not 0 <= seconds <= LONGEST_OUTAGE:
            wanted = f'give a duration such as 3600, "12h" or "3d", up to {LONGEST_OUTAGE / 86_400:.0f} days'
            raise _bad("for", self.lasting, wanted)
        return float(seconds)

    def outcome(self, body: bytes | None, rechecks: Rechecks, *, truncated: bool) -> SimulatedOutcome:
        """The outcome, with the file that is cached or served, `truncated` if it goes on beyond `body`.

        Raises Problem if the members contradict each other.
        """
        text = body or b""
        sent = Successful(200, readable_part(text), truncated or len(text) > BODY_LIMIT)
        copy = sent if body is not None and self.had_copy else None
        return SimulatedOutcome(recognise_challenge(self._fetched(sent)), self.seconds(), copy, rechecks)

    def _fetched(self, file: Successful) -> Fetched:
        """The result of such a fetch; `file` comes with a 2xx. Raises Problem if the members contradict each other."""
        if self.retry_after is not None and not (self.cause is None and _may_ask_to_wait(self.status)):
            raise _bad("retry_after", self.retry_after, "send it only with a status of 429 or 5xx, and without a cause")
        match self.cause:
            case None:
                return self._by_status(file)
            case "blocked_address":
                return Fetched(Blocked(""))
            case "redirect_loop" | "cookie_loop" as cause:
                return Fetched(Unavailable(self.status or 301, Cause(cause)))
            case cause:
                return Fetched(Unreachable(Cause(cause), self.status))

    def _by_status(self, file: Successful) -> Fetched:
        status = self.status
        if status is None:
            raise bad_value("outcome", None, "outcome needs a status or a cause.")
        if status in REDIRECTS:
            wanted = 'a fetch follows redirects; send the status at their end, or "cause": "redirect_loop"'
            raise _bad("status", status, wanted)
        headers = [] if self.retry_after is None else [(b"retry-after", b"%d" % self.retry_after)]
        sent = Successful(204, b"") if status == 204 else file  # 204 has no body
        return read_observed(status, headers, sent.body, 0.0, None, truncated=sent.truncated)


def rechecks_of(targets: Iterable[Target], agents: Iterable[Agent], models: Models) -> Rechecks:
    """The rechecks that a simulation needs; raises Problem if there are too many pairs of origin and recheck."""
    names = {agent.recheck for agent in agents}
    rechecks: dict[tuple[Origin, str], Recheck] = {}
    for origin in dict.fromkeys(target.origin for target in targets):
        rechecks |= {(origin, name): recheck_of(models(origin.host, name)) for name in names}
        if len({(origin, recheck) for (origin, _), recheck in rechecks.items()}) > OUTAGES:
            detail = f"A test can simulate an outcome for at most {OUTAGES} pairs of origin and recheck model."
            raise Problem("too-many-origins", detail, parameter="outcome")
    return rechecks


def recheck_of(model: Model) -> Recheck:
    """The recheck for an origin that was not visited before."""
    return model if isinstance(model, Recheck) else model.recheck(FIRST_VISIT)


def _may_ask_to_wait(status: int | None) -> bool:
    return status is not None and (status == 429 or status >= 500)


def _bad(field: str, value: object, wrong: str) -> Problem:
    return bad_value(f"outcome.{field}", value, f"outcome.{field} is {value!r:.100}: {wrong}.", "bad-outcome")


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


class Conditions(NamedTuple):
    """What a test takes from the service.

    `known` are the crawlers that are known by name. `forbidden`: whether a 401 or 403 closes the site.
    """

    known: AgentDirectory
    now: datetime
    models: Models
    forbidden: bool


def read(
    test: TrialIn, body: bytes | None, conditions: Conditions, policy: PurposePolicy | None, *, limited: bool = True
) -> Trial:
    """Read a test, `limited` to the rows of a request; `policy` is the test's. Raises Problem and BadQuestion."""
    targets = [target_from(url, f"urls[{number}]") for number, url in enumerate(test.urls)]
    readers: list[tuple[Agent, str]] = []
    for number, name in enumerate(test.agents):
        for agent in agents_from(name, conditions.known, f"agents[{number}]"):
            for place, dialect in enumerate(test.dialects or [None]):
                readers.append((agent, dialect_from(dialect, agent, f"dialects[{place}]").name))
        count = len(targets) * len(readers)
        if limited and count > ROWS_LIMIT:
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
    if limited and trial.explained and trial.rows > EXPLAINED_LIMIT:
        detail = f"This test has {trial.rows} rows; with explain, send at most {EXPLAINED_LIMIT}."
        raise Problem("too-many-rows", detail, parameter="urls")
    return trial
