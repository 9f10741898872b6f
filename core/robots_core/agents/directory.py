"""Known crawlers with their operators and categories: the rows of agents.toml, and an operator's own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cache, cached_property, lru_cache, partial
from hashlib import sha256
from typing import Final

from robots_core.robots.agents import Agent, agent_rows, known_agents, read_agent, says


class AgentCategory(StrEnum):
    """What a crawler mainly fetches pages for."""

    SEARCH = "search"
    AI_TRAINING = "ai-training"
    AI_SEARCH = "ai-search"
    AI_ASSISTANT = "ai-assistant"
    ARCHIVER = "archiver"
    SEO = "seo"
    SOCIAL = "social"
    MONITORING = "monitoring"
    OTHER = "other"


CATEGORY_MARK: Final = "@"
"""What stands before a category where agents are named: `@ai-training` is all of that category."""


DEFAULT_PROFILE: Final = "default"
"""The name of the fetch profile of crawlers that have none of their own."""


class UnknownProfile(ValueError):
    """A fetch profile that is not in the operator's file; the message names it and those that are."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"Unknown profile {name[:100]!r}. Choose one of: {', '.join((DEFAULT_PROFILE, *known))}.")


class UnknownCategory(ValueError):
    """A category that is none of AgentCategory; the message names it and them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown category {name[:100]!r}. Choose one of: {', '.join(AgentCategory)}.")


@dataclass(frozen=True, kw_only=True)
class AgentFacts:
    """Who a crawler is: what a row may say beside AgentRow."""

    operator: str | None = field(
        default=None,
        metadata=says(
            "Who operates it; null where AGENTS_FILE does not say.",
            min_length=1,
            max_length=200,
            pattern=r"^[^\x00-\x1f\x7f]*$",
        ),
    )
    category: AgentCategory = field(
        default=AgentCategory.OTHER, metadata=says("What it mainly fetches pages for.", strict=False)
    )
    documentation: str | None = field(
        default=None, metadata=says("The operator's page about it.", max_length=2000, pattern=r"^https?://[!-~]+$")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent(AgentFacts):
    """A crawler of the directory.

    `source` is a key of docs/reference/robots-spec.md, and `source_date` the day as of which it says so; a row of
    AGENTS_FILE has neither.
    """

    agent: Agent
    source: str | None = None
    source_date: date | None = None

    @property
    def own(self) -> bool:
        """Whether the row is the operator's own."""
        return self.source is None


class AgentDirectory:
    """The crawlers that are known by name. Of two rows with the same token, the later one counts.

    `profiles` are the names of the operator's fetch profiles.
    """

    def __init__(self, rows: Iterable[KnownAgent], profiles: Iterable[str] = ()) -> None:
        self.profiles = tuple(profiles)
        self._rows = {row.agent.token.lower(): row for row in rows}
        # A fleet uses few names, and parsing a whole User-Agent header takes longer than a decision.
        self._read = partial(read_agent, known={token: row.agent for token, row in self._rows.items()})
        self._cached = lru_cache(_CACHED_AGENTS)(self._read)

    @property
    def rows(self) -> Sequence[KnownAgent]:
        """All crawlers, in the order of their first rows."""
        return list(self._rows.values())

    @cached_property
    def digest(self) -> str:
        """The same for directories with the same rows and profiles, in every process."""
        return sha256(repr((self.rows, self.profiles)).encode()).hexdigest()

    def read(self, name: str) -> Agent:
        """The agent that a token or a User-Agent header names; raises BadAgent."""
        return self._cached(name) if len(name) <= _CACHED_LENGTH else self._read(name)

    def of(self, category: AgentCategory) -> Sequence[KnownAgent]:
        """The crawlers of a category."""
        return [row for row in self._rows.values() if row.category is category]

    def expand(self, name: str) -> Sequence[str]:
        """The tokens of all crawlers of a category for `@category`, else the name itself; raises UnknownCategory."""
        if not name.startswith(CATEGORY_MARK):
            return [name]
        return [row.agent.token for row in self.of(read_category(name.removeprefix(CATEGORY_MARK)))]

    def profile(self, name: str) -> str | None:
        """The fetch profile of that name, None for the default one; raises UnknownProfile."""
        if name != DEFAULT_PROFILE and name not in self.profiles:
            raise UnknownProfile(name, self.profiles)
        return None if name == DEFAULT_PROFILE else name

    def with_own(self, rows: Iterable[KnownAgent], profiles: Iterable[str]) -> "AgentDirectory":
        """This directory with an operator's profiles and own rows, which replace those with the same tokens."""
        return AgentDirectory([*self._rows.values(), *rows], profiles)


_CACHED_AGENTS = 4096
_CACHED_LENGTH = 256
"""Names that are cached with their agents, and the longest of them in characters: 6 MB at most."""


@cache
def builtin_directory() -> AgentDirectory:
    """The crawlers of agents.toml, in its order."""
    return AgentDirectory(
        KnownAgent(
            agent=known_agents()[token.lower()],
            operator=operator,
            category=AgentCategory(row["category"]),
            documentation=row.get("documentation"),
            source=row["source"],
            source_date=row["source_date"],
        )
        for operator, token, row in agent_rows()
    )


def read_category(name: str) -> AgentCategory:
    """The category of that name; raises UnknownCategory."""
    try:
        return AgentCategory(name)
    except ValueError:
        raise UnknownCategory(name) from None
