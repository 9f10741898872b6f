"""Names that differ from a known one by a slip of the keyboard, and those of operators in place of their crawlers."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from robots_core.robots.agents import STAR, known_agents

_SHORTEST: Final = 6
"""Letters of the shortest crawler whose slips are looked for: shorter ones are a letter away from names of others."""

_SHORTEST_DROPPED: Final = 7
"""The same of the slip that drops a letter."""

_CALLED: Final[Mapping[str, str]] = {
    "amazon": "Amazonbot",
    "anthropic": "ClaudeBot",
    "apple": "Applebot",
    "baidu": "Baiduspider",
    "bing": "bingbot",
    "claude": "ClaudeBot",
    "duckduckgo": "DuckDuckBot",
    "google": "Googlebot",
    "perplexity": "PerplexityBot",
    "yahoo": "Slurp",
    **dict.fromkeys(("all", "any", "anybody", "anyone", "everybody", "everyone"), STAR),
    **dict.fromkeys(("allbots", "allcrawlers", "allrobots", "bots", "crawlers", "robots", "spiders"), STAR),
}
"""The name of an operator, or a word for all -> the crawler that is meant, or `*`."""


def slips(word: str) -> Iterator[str]:
    """The word with a letter doubled, written over its neighbour or swapped with it, and in the plural."""
    yield word + ("S" if word.isupper() else "s")
    for at, letter in enumerate(word):
        before, after = word[:at], word[at + 1 :]
        yield before + letter + letter + after
        yield before + after[:1] + letter + after[1:]
        if at > 0:
            yield before + word[at - 1] + after
        if after:
            yield before + after[0] + after


def dropped(word: str) -> Iterator[str]:
    """The word without one of its letters."""
    return (word[:at] + word[at + 1 :] for at in range(len(word)))


def meant_crawler(token: str) -> str | None:
    """The crawler of agents.toml, or `*`, that a token in lower case may be meant as; None if there is none.

    Hyphens and underscores count for nothing, since they are forgotten and added like letters.
    """
    return None if token in known_agents() else _misspellings().get(_bare(token))


@cache
def _misspellings() -> Mapping[str, str]:
    """Misspelt name -> the token of the crawler that is meant."""
    bare = {_bare(name): agent.token for name, agent in known_agents().items()}
    found: dict[str, str] = {}
    for name, token in bare.items():
        if len(name) >= _SHORTEST:
            found |= dict.fromkeys(slips(name), token)
        if len(name) >= _SHORTEST_DROPPED:
            found |= dict.fromkeys(dropped(name), token)
    return {**found, **_CALLED, **bare}


def _bare(token: str) -> str:
    return token.replace("-", "").replace("_", "")
