"""A robots.txt, or the outcome of a fetch that brought none, and what it decides."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from robots_core.origin import read_target
from robots_core.outcomes import read_outcome
from robots_core.purposes.policy import PurposePolicy, read_purposes
from robots_core.robots.access import Access, Successful, readable_part
from robots_core.robots.agents import Agent, read_agent
from robots_core.robots.dialects import DIALECTS, Dialect
from robots_core.robots.groups import Selection
from robots_core.robots.judge import judge
from robots_core.robots.lines import readable
from robots_core.robots.rates import Rate
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.terms import Terms
from robots_core.robots.verdict import Permission, Reason, Verdict

if TYPE_CHECKING:
    from robots_core.lint.advice import Advice
    from robots_core.robots.explain import Explanation

AGENTS_KEPT = 1024
"""Texts of agents that are remembered with what they name."""


class UnknownDialect(ValueError):
    """A dialect that is none of DIALECTS; the message names it and them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown dialect {name[:100]!r}. Choose one of: {', '.join(DIALECTS)}.")


class Decision(NamedTuple):
    """Whether a URL may be fetched: allow, disallow, or defer if that is not known now.

    `rule` is the line that decided, as `key: value`, and `line` its number; None if none did. `rate` is the rate that
    the file asks for; None for none.

    A decision has no truth value, since a defer would then have to count as one of the others.
    """

    verdict: Permission
    reason: Reason
    rule: str | None = None
    line: int | None = None
    rate: Rate | None = None

    @property
    def allowed(self) -> bool:
        """Whether the URL may be fetched now: False for disallow and for defer."""
        return self.verdict is Permission.ALLOW

    def __bool__(self) -> NoReturn:
        raise TypeError("A decision is neither true nor false: compare its verdict, or use its `allowed`.")


def agent(text: str) -> Agent:
    """The agent that a product token or a User-Agent header names. Raises BadAgent."""
    return _agent(text)


_agent = lru_cache(AGENTS_KEPT)(read_agent)


class File:
    """A robots.txt, or the outcome of a fetch that brought none. Any number of threads may use it.

    `robots` is the parsed file, None without one.
    """

    __slots__ = ("access", "robots")

    def __init__(self, access: Access) -> None:
        self.access = access
        self.robots = RobotsTxt(access.body, truncated=access.truncated) if isinstance(access, Successful) else None

    def decide(
        self,
        url: str,
        agent: str | Agent,
        *,
        dialect: str | None = None,
        purpose: str | Sequence[str] = (),
        at: datetime | None = None,
        forbidden: bool = False,
    ) -> Decision:
        """Whether `agent` may fetch `url`, an absolute URL of this site, or its path and query.

        `dialect`: how the file is read, by default as the agent reads it. `purpose`: what the page is wanted for; it
        is disallowed if its site refuses that. `at`: the aware instant that the rate is for, by default now.
        `forbidden`: whether a 401 or 403 closes the site under every dialect. Raises BadUrl, BadAgent, UnknownDialect
        and UnknownPurpose.
        """
        who = _agent(agent) if isinstance(agent, str) else agent
        reads = dialect_of(dialect, who)
        path = url if url.startswith("/") else read_target(url).path
        verdict = judge(self.access, self.robots, reads, who, path, forbidden=forbidden)
        if purpose:
            verdict = self._for_purposes((purpose,) if isinstance(purpose, str) else purpose, verdict, reads, who, path)
        terms = self.terms(verdict.selection, who, reads)
        return decision(verdict, None if terms is None else terms.rates.at(at or datetime.now(UTC)).value)

    def rate(self, agent: str | Agent, *, dialect: str | None = None, at: datetime | None = None) -> Rate | None:
        """The rate that the file asks of `agent` at an aware instant, by default now; None for none."""
        who = _agent(agent) if isinstance(agent, str) else agent
        reads = dialect_of(dialect, who)
        selection = None if self.robots is None else self.robots.reading(reads).select(who)
        terms = self.terms(selection, who, reads)
        return None if terms is None else terms.rates.at(at or datetime.now(UTC)).value

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that the file names, if they are absolute URLs."""
        return () if self.robots is None else self.robots.sitemaps

    @property
    def version(self) -> str | None:
        """The id of what was found, as the service gives it: 16 digits of a hash; None if the fetch failed.

        Files of the same bytes have the same id, and so have equal outcomes such as 404.
        """
        from robots_core.content import version_id

        return version_id(self.access)

    def lint(self, site: str | None = None) -> "list[Advice]":
        """What is wrong with the file, by line. `site`: its scheme and authority, as in "https://example.com"."""
        from robots_core.lint.linter import lint

        return [] if self.robots is None else lint(self.robots, None, site)

    def explain(
        self, url: str, agent: str | Agent, *, dialect: str | None = None, limit: int = 10
    ) -> "Explanation | None":
        """How the group was selected, and the first `limit` rules that match; None if there is no file."""
        from robots_core.robots.explain import explain

        if self.robots is None:
            return None
        who = _agent(agent) if isinstance(agent, str) else agent
        path = url if url.startswith("/") else read_target(url).path
        return explain(self.robots, dialect_of(dialect, who), who, path, limit=limit)

    def terms(self, selection: Selection | None, agent: Agent, dialect: Dialect) -> Terms | None:
        """What the selected groups state besides rules; None without a file or a group."""
        return terms_of(self.robots, dialect, agent, selection)

    def _for_purposes(
        self, names: Sequence[str], verdict: Verdict, dialect: Dialect, agent: Agent, path: str
    ) -> Verdict:
        from robots_core.purposes.judge import judge_for

        terms = self.terms(verdict.selection, agent, dialect)
        usage = None
        if terms is not None and terms.usage is not None:
            usage = terms.usage.at(path, allowed=verdict.permission is Permission.ALLOW)
        return judge_for(PurposePolicy(read_purposes(names), enforce=True), verdict, usage)[0]


def read(body: bytes, *, truncated: bool = False) -> File:
    """A file that was fetched with 2xx. Any bytes are valid; `truncated`: there was more.

    At most BODY_LIMIT bytes are read (RFC 9309 2.5). Raises TypeError for a text.
    """
    if not isinstance(body, bytes):
        raise TypeError(f"read() takes the bytes of a file, not {type(body).__name__}")
    part = readable_part(body)
    return File(Successful(200, part, truncated or len(part) < len(body)))


def outcome(word: int | str) -> File:
    """What a fetch that brought no file means: a status, or a failure such as "timeout" or "dns". Raises BadOutcome."""
    return File(read_outcome(word))


def decision(verdict: Verdict, rate: Rate | None) -> Decision:
    """The decision for a verdict, and the rate of its groups."""
    if verdict.rule is None:
        return Decision(verdict.permission, verdict.reason, None, None, rate)
    line, key, value = verdict.rule.directive
    return Decision(verdict.permission, verdict.reason, f"{key}: {readable(value)}", line, rate)


def dialect_of(name: str | None, agent: Agent) -> Dialect:
    """The dialect of that name, or the agent's own for None. Raises UnknownDialect."""
    return dialect_named(agent.dialect if name is None else name)


def dialect_named(name: str) -> Dialect:
    """The dialect of that name. Raises UnknownDialect."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownDialect(str(name)) from None


def terms_of(robots: RobotsTxt | None, dialect: Dialect, agent: Agent, selection: Selection | None) -> Terms | None:
    """The terms of the selected groups; None without a file or a group."""
    if robots is None or selection is None:
        return None
    return robots.reading(dialect).terms(selection, agent)
