"""The page about a crawler for site owners whom it visits: who, why, and the lines that stop it or slow it down."""

from html import escape
from typing import Final
from urllib.parse import quote

from app.identity.well_known import DIRECTORY_PATH
from robots_core.agents.directory import AgentCategory, KnownAgent
from robots_core.robots.agents import STAR, Agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.groups import tokens_of

SLOWED_TO: Final = 10.0
"""Seconds between two pages in the lines that slow a crawler down: the most that SeznamBot keeps."""

_WHY: Final = {
    AgentCategory.SEARCH: " for a search engine",
    AgentCategory.AI_TRAINING: " to train AI models",
    AgentCategory.AI_SEARCH: " for AI search",
    AgentCategory.AI_ASSISTANT: " for the users of an AI assistant",
    AgentCategory.ARCHIVER: " for an archive",
    AgentCategory.SEO: " to analyse how sites do in search engines",
    AgentCategory.SOCIAL: " for previews of links",
    AgentCategory.MONITORING: " to watch pages for changes",
}

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>{title}</title></head><body><main>
<h1>{title}</h1>
<p>{token} fetches pages{why}. Its requests have this User-Agent:</p>
<pre>{user_agent}</pre>
<p>Others can write the same. The requests of {token} are signed (Web Bot Auth, RFC 9421), and can be verified by
<a href="{keys}">its public keys</a>.</p>
<h2>Stop it</h2>
{stop}
<h2>Slow it down</h2>
{slow}
<h2>Contact</h2>
{contact}
</main></body></html>
"""


def mail_link(address: str) -> str:
    """The mailto URL of an address."""
    return f"mailto:{quote(address, safe='@')}"


def stopping_lines(agent: Agent) -> str | None:
    """The lines of a robots.txt that keep the crawler out, or None if no group binds it."""
    named = _named(agent)
    return None if named is None else f"User-agent: {named}\nDisallow: /"


def slowing_lines(agent: Agent, cap: float | None) -> str | None:
    """The lines that slow the crawler down, or None if it reads no rate. It waits `cap` seconds at most."""
    named = _named(agent)
    if named is None:
        return None
    rates = DIALECTS[agent.dialect].rates
    seconds = SLOWED_TO if cap is None else min(SLOWED_TO, cap)
    if rates.uses_crawl_delay:
        return f"User-agent: {named}\nCrawl-delay: {seconds:g}"
    if rates.uses_request_rate and seconds >= 1:
        return f"User-agent: {named}\nRequest-rate: 1/{int(seconds)}"
    return None


def crawler_page(
    crawler: KnownAgent, origin: str, user_agent: str, contact: str | None, cap: float | None = None
) -> bytes:
    """The page in HTML. `origin` has the directory of its keys, `contact` is a mail address, `cap` as slowing_lines.

    All values are of the operator's file, and escaped.
    """
    links = [] if contact is None else [(mail_link(contact), contact)]
    links += [] if crawler.documentation is None else [(crawler.documentation, crawler.documentation)]
    token = escape(crawler.agent.token)
    return _PAGE.format(
        title=token if crawler.operator is None else f"{token}, a crawler of {escape(crawler.operator)}",
        token=token,
        why=_WHY.get(crawler.category, ""),
        user_agent=escape(user_agent),
        keys=escape(origin + DIRECTORY_PATH),
        stop=_stop(crawler.agent),
        slow=_slow(crawler.agent, cap),
        contact="\n".join(f'<p><a href="{escape(url)}">{escape(text)}</a></p>' for url, text in links)
        or "<p>The operator names no address but what its User-Agent says.</p>",
    ).encode()


def _stop(agent: Agent) -> str:
    lines = stopping_lines(agent)
    if lines is None:
        return "<p>No line of a robots.txt is for it: it reads names without digits only.</p>"
    exempt = "The operator says that it does not, or not always, ask robots.txt. " if agent.exempt else ""
    return f"""<p>{exempt}These lines of your robots.txt keep it out; with a path such as <code>/private/</code>
in place of <code>/</code>, out of what begins with it:</p>
<pre>{escape(lines)}</pre>
<p>It reads a change once its copy of the file is too old, as a rule within a day. A group that names it replaces the
group for <code>*</code>: repeat there what holds for it, too.</p>"""


def _slow(agent: Agent, cap: float | None) -> str:
    lines = slowing_lines(agent, cap)
    backoff = "<p>A response with status 429 or 503 and <code>Retry-After</code> makes it wait.</p>"
    if lines is None:
        return f"<p>It reads no rates in robots.txt.</p>\n{backoff}"
    return f"""<p>With these lines, in one group with what else is for it, it waits so many seconds between pages:</p>
<pre>{escape(lines)}</pre>\n{backoff}"""


def _named(agent: Agent) -> str | None:
    """The name in a line User-agent that binds the crawler: `*` if its dialect knows no name such as its token."""
    if tokens_of([agent.token.encode("ascii")], DIALECTS[agent.dialect].token) == [agent.token.lower()]:
        return agent.token
    return STAR if agent.star else None
