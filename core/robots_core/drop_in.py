"""What the drop-ins for other parsers share: their arguments, and members of a file as they give them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from robots_core.file import File, terms_of
from robots_core.origin import BadUrl, read_target
from robots_core.robots.agents import STAR, Agent, BadAgent, read_agent
from robots_core.robots.dialects import Dialect
from robots_core.robots.dialects.rfc9309 import RFC9309
from robots_core.robots.rates import DAY_MINUTES, Rate, RatePolicy, RateSource, Window
from robots_core.robots.terms import Terms

_REQUEST_RATES: Final[Dialect] = replace(RFC9309, name="request-rate", rates=RatePolicy(uses_crawl_delay=False))
"""RFC 9309 without Crawl-delay, for the Request-rate alone."""


def agent_or_star(text: str) -> Agent:
    """The agent of a text, or `*` if it names none: other parsers take any text."""
    try:
        return read_agent(text)
    except BadAgent:
        return read_agent(STAR)


def path_of(url: str) -> str:
    """The path and query of a URL, which may lack its scheme, its host or both."""
    if url.startswith("/") and not url.startswith("//"):
        return url.partition("#")[0]
    try:
        return read_target(url).path
    except BadUrl:
        pass  # other parsers take any text
    try:
        parts = urlsplit(url)
    except ValueError:  # a host that no URL can have, which other parsers ignore, too
        return "/"
    path = parts.path if parts.path.startswith("/") else f"/{parts.path}"
    return f"{path}?{parts.query}" if "?" in url.partition("#")[0] else path


def crawl_delay(file: File, agent: str) -> float | None:
    """The Crawl-delay that the file states for an agent, in seconds."""
    terms = _terms(file, agent, RFC9309)
    return None if terms is None or terms.crawl_delay is None else terms.crawl_delay.seconds


def request_rate(file: File, agent: str) -> Rate | None:
    """The Request-rate in force now."""
    terms = _terms(file, agent, _REQUEST_RATES)
    rate = None if terms is None else terms.rates.at(datetime.now(UTC)).value
    return rate if rate is not None and rate.source is RateSource.REQUEST_RATE else None


def visit_window(file: File, agent: str) -> Window | None:
    """The first window of Visit-time; one that crosses midnight is the last."""
    terms = _terms(file, agent, RFC9309)
    if terms is None or terms.visits is None:
        return None
    starts, welcome = terms.visits.starts, terms.visits.values
    ends = (*starts[1:], DAY_MINUTES)
    windows = [(start, end) for start, end, open_ in zip(starts, ends, welcome, strict=True) if open_]
    if len(windows) > 1 and windows[0][0] == 0 and windows[-1][1] == DAY_MINUTES:
        (_, end), *windows = windows
        windows[-1] = (windows[-1][0], end)
    return Window(*windows[0])


def _terms(file: File, agent: str, dialect: Dialect) -> Terms | None:
    if file.robots is None:
        return None
    who = agent_or_star(agent)
    return terms_of(file.robots, dialect, who, file.robots.reading(dialect).select(who))
