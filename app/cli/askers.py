"""Who decides the questions of a command: a service, or a Decider in this process that fetches from here."""

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from app.api.problems import Problem
from app.api.questions import read_item
from app.api.schemas.robots_file import content_type_of
from app.api.serialize import answer_out, warnings_out
from app.cache.lease import MARGIN
from app.cli.bare_host import candidates, lacks_https
from app.cli.client import ServiceClient
from app.cli.exit_codes import Failed, Parser
from app.cli.standalone import standalone
from app.decide import Decider
from app.main.operator_files import own_agents
from app.question import Asking, BadQuestion, QuestionIn, agent_from, dialect_from, instant_from, target_from
from app.settings import Settings
from robots_core.agents.directory import CATEGORY_MARK, AgentDirectory, UnknownCategory, read_category
from robots_core.purposes.policy import PURPOSES, PurposePolicy
from robots_core.robots.access import Busy
from robots_core.robots.dialects import DIALECTS


def add_question(parser: Parser) -> None:
    """Add the arguments that say how a question is decided."""
    parser.add_argument("--dialect", choices=list(DIALECTS), help="the dialect; the default depends on the agent")
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant for which rates are computed; default now")
    parser.add_argument(
        "--purpose", action="append", choices=PURPOSES, help="what the page is wanted for; may be repeated"
    )


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of a question that were given."""
    given = {name: getattr(arguments, name) for name in ("dialect", "at", "purpose")}
    return {name: value for name, value in given.items() if value is not None}


class Asker(Protocol):
    """Decides questions with the dialect, instant and purposes of a command line. The methods raise Failed."""

    async def agents_of(self, category: str) -> Sequence[str]:
        """The tokens of all known crawlers of a category."""

    async def answer(
        self, url: str, agents: Sequence[str], *, explain: bool, as_of: str | None = None
    ) -> dict[str, Any]:
        """The answer of `GET /v1/allowed` for an absolute URL; agents after the first are fallbacks."""

    async def profile(self, token: str) -> str | None:
        """The fetch profile of the crawler with this product token."""

    async def warnings(self, url: str, profile: str | None) -> Sequence[dict[str, Any]]:
        """The warnings about the robots.txt of the URL's origin, as that fetch profile sees it."""


async def expanded(asker: Asker, agents: Sequence[str]) -> Sequence[str]:
    """The agents, with all known crawlers of a category in place of `@category`. Raise Failed."""
    tokens: dict[str, None] = {}
    for name in agents:
        of_category = name.startswith(CATEGORY_MARK)
        found = await asker.agents_of(name.removeprefix(CATEGORY_MARK)) if of_category else [name]
        tokens.update(dict.fromkeys(found))
    return list(tokens)


async def ask(asker: Asker, text: str, agents: Sequence[str], *, explain: bool) -> dict[str, Any]:
    """The answer for a URL, or for the first URL of a bare host that can be reached. Raise Failed."""
    first, *others = candidates(text)
    answer = await asker.answer(first, agents, explain=explain)
    for url in others if lacks_https(answer["robots"]) else ():
        other = await asker.answer(url, agents, explain=explain)
        if not lacks_https(other["robots"]):
            return other
    return answer


@asynccontextmanager
async def asking(arguments: argparse.Namespace, texts: Sequence[str], agents: Sequence[str]) -> AsyncIterator[Asker]:
    """The asker of a command line, which raises Failed for a URL or an agent that is invalid."""
    if arguments.server is not None:
        async with ServiceClient(arguments.server) as service:
            yield ServiceAsker(service, arguments)
        return
    settings = Settings.read()
    own = own_agents(settings)
    known = own.value.directory
    try:
        for text in texts:
            target_from(candidates(text)[0])
        for agent in (token for name in agents for token in known.expand(name)):
            dialect_from(arguments.dialect, agent_from(agent, known))
        instant_from(arguments.at)
        async with standalone(settings, own) as decider:
            yield LocalAsker(decider, settings, known, arguments)
    except Problem as problem:
        raise Failed(problem.detail) from None
    except (BadQuestion, Busy, UnknownCategory) as error:
        raise Failed(str(error)) from None


class ServiceAsker:
    """Asks a running service."""

    def __init__(self, service: ServiceClient, arguments: argparse.Namespace) -> None:
        self.service = service
        self._options = _options(arguments)
        self._profiles: dict[str, str | None] | None = None

    async def agents_of(self, category: str) -> Sequence[str]:
        """As Asker has it."""
        known = await self.service.get_object("/v1/agents", {"category": category}, expected="agents")
        return [it["token"] for it in known["agents"]]

    async def answer(
        self, url: str, agents: Sequence[str], *, explain: bool, as_of: str | None = None
    ) -> dict[str, Any]:
        """As Asker has it."""
        optional = {"as_of": as_of, "explain": "true" if explain else None}
        parameters: dict[str, Any] = {name: value for name, value in optional.items() if value is not None}
        parameters |= {"url": url, "agent": list(agents), **self._options}
        return await self.service.get_object("/v1/allowed", parameters, expected="verdict")

    async def profile(self, token: str) -> str | None:
        """As Asker has it."""
        if self._profiles is None:
            known = await self.service.get_object("/v1/agents", {}, expected="agents")
            self._profiles = {it["token"].lower(): it["profile"] for it in known["agents"]}
        return self._profiles.get(token.lower())

    async def warnings(self, url: str, profile: str | None) -> Sequence[dict[str, Any]]:
        """As Asker has it."""
        parameters = {"url": url} | ({} if profile is None else {"profile": profile})
        file = await self.service.get_object("/v1/robots", parameters, expected="robots")
        found: list[dict[str, Any]] = file.get("warnings", [])
        return found


class LocalAsker:
    """Decides here, by a fetch from here."""

    def __init__(
        self, decider: Decider, settings: Settings, known: AgentDirectory, arguments: argparse.Namespace
    ) -> None:
        self._decider = decider
        self._known = known
        self._wait = settings.fetch_timeout + MARGIN
        policy = PurposePolicy(settings.purposes, settings.enforce_purposes)
        self._asking = Asking(known, lambda: datetime.now(UTC), policy, wait=self._wait)
        self._options = _options(arguments)

    async def agents_of(self, category: str) -> Sequence[str]:
        """As Asker has it."""
        return [known.agent.token for known in self._known.of(read_category(category))]

    async def answer(
        self, url: str, agents: Sequence[str], *, explain: bool, as_of: str | None = None
    ) -> dict[str, Any]:
        """As Asker has it, without a past: nothing is stored here."""
        if as_of is not None:
            raise Failed("Only a service knows the past: give --server URL.")
        asked = read_item(QuestionIn, {"url": url, "agent": list(agents), **self._options})
        decision = await self._decider.decide(asked.question(self._asking))
        return answer_out(decision, explained=explain).model_dump(mode="json")

    async def profile(self, token: str) -> str | None:
        """As Asker has it."""
        return agent_from(token, self._known).profile

    async def warnings(self, url: str, profile: str | None) -> Sequence[dict[str, Any]]:
        """As Asker has it."""
        origin = target_from(url).origin
        file = await self._decider.files.get(origin.with_profile(profile), wait=self._wait)
        if file.robots is None:
            return []
        return [it.model_dump(mode="json") for it in warnings_out(file.robots, content_type_of(file), origin)]
