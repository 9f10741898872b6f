"""Propose rows for agents.toml from two public lists of crawlers: `python core/tools/propose_agents.py --help`.

The lists are ai.robots.txt (robots.json) and crawler-user-agents (crawler-user-agents.json), both under the MIT
licence. They are data that a person reads: download them by hand, run this, check each row against its operator's page,
and copy what holds into agents.toml. The service never reads them.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from robots_core.agents.directory import AgentCategory
from robots_core.robots.agents import known_agents
from robots_core.robots.user_agent import TOKEN

COMMON_WORDS = frozenset({"code", "cursor", "operator", "spider", "terra"})
"""Names of listed crawlers that are words of other crawlers' names: a known `Spider` would be all that have the word.

Groups for them are found without a row.
"""

_LINK = re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)")
_ESCAPE = re.compile(r"\\(.)")

# The tags of crawler-user-agents, the most telling first. An AI crawler's tag does not say what it feeds.
_TAGS = {
    "archiver": AgentCategory.ARCHIVER,
    "seo": AgentCategory.SEO,
    "social-preview": AgentCategory.SOCIAL,
    "monitoring": AgentCategory.MONITORING,
    "search-engine": AgentCategory.SEARCH,
}
_WORDS = (
    ("train", AgentCategory.AI_TRAINING),
    ("search", AgentCategory.AI_SEARCH),
    ("assistant", AgentCategory.AI_ASSISTANT),
    ("agent", AgentCategory.AI_ASSISTANT),
)


class Proposal(NamedTuple):
    """A row for agents.toml; `operator` and `documentation` are empty where the list does not say."""

    token: str
    operator: str
    category: AgentCategory
    documentation: str
    source: str


def token_of(name: str) -> str | None:
    """A listed name as a file names it, cut by spec C2; None for what may not be a row."""
    found = TOKEN.match(name)
    return None if found is None or len(found[0]) < 3 or found[0].lower() in COMMON_WORDS else found[0]


def from_ai_robots_txt(table: Mapping[str, Any]) -> Iterator[Proposal]:
    """The crawlers of robots.json: by name an operator, a function and a description, in prose."""
    for name, row in table.items():
        token = token_of(name)
        if token is None or not isinstance(row, dict):
            continue
        link = _LINK.search(str(row.get("operator", "")))
        text = f"{row.get('function', '')} {row.get('description', '')}".lower()
        category = next((category for word, category in _WORDS if word in text), AgentCategory.OTHER)
        yield Proposal(token, link[1] if link else "", category, link[2] if link else "", "AIR")


def from_crawler_user_agents(rows: Iterable[Mapping[str, Any]]) -> Iterator[Proposal]:
    """The crawlers whose pattern begins with a name, and whose tags tell a category."""
    for row in rows:
        name = _ESCAPE.sub(r"\1", str(row.get("pattern", ""))).removesuffix("/")
        category = next((category for tag, category in _TAGS.items() if tag in row.get("tags", ())), None)
        token = token_of(name)
        if token is not None and category is not None:
            yield Proposal(token, "", category, str(row.get("url") or ""), "CUA")


def new(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Those that are not in agents.toml, each token once, by category and token."""
    known = known_agents()
    found: dict[str, Proposal] = {}
    for proposal in proposals:
        if proposal.token.lower() not in known:
            found.setdefault(proposal.token.lower(), proposal)
    return sorted(found.values(), key=lambda it: (it.category, it.token.lower()))


def row_text(proposal: Proposal, as_of: date) -> str:
    """A line of TOML, to be put in front of the tables of agents.toml."""
    documentation = f", documentation = {json.dumps(proposal.documentation)}" if proposal.documentation else ""
    return (
        f"{json.dumps(proposal.operator or proposal.token)}.agents.{proposal.token} = "
        f'{{ category = "{proposal.category}"{documentation}, source = "{proposal.source}", source_date = {as_of} }}'
    )


def main(arguments: Sequence[str]) -> int:
    """Print the proposals."""
    parser = argparse.ArgumentParser(
        description="Propose rows for core/robots_core/robots/agents.toml; nothing is changed."
    )
    parser.add_argument("--ai-robots-txt", type=Path, metavar="FILE", help="robots.json of ai.robots.txt")
    parser.add_argument("--crawler-user-agents", type=Path, metavar="FILE", help="crawler-user-agents.json")
    parser.add_argument("--as-of", type=date.fromisoformat, default=datetime.now(UTC).date(), help="source_date; today")
    given = parser.parse_args(arguments)
    if given.ai_robots_txt is None and given.crawler_user_agents is None:
        parser.error("name at least one list")
    proposals: list[Proposal] = []
    if given.ai_robots_txt is not None:
        proposals += from_ai_robots_txt(json.loads(given.ai_robots_txt.read_text("utf-8")))
    if given.crawler_user_agents is not None:
        proposals += from_crawler_user_agents(json.loads(given.crawler_user_agents.read_text("utf-8")))
    for proposal in new(proposals):
        sys.stdout.write(row_text(proposal, given.as_of) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
