"""Checks of User-agent lines (spec C2, C13)."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from robots_core.lint.advice import Warned, directive, show
from robots_core.lint.checked_file import AgentLine, CheckedFile
from robots_core.robots.agents import AGENT_LIMIT, STAR, BadAgent, known_agents, read_agent
from robots_core.robots.lines import Key, readable
from robots_core.robots.misspelt import meant_crawler

_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]+")
_BROWSERS: Final = frozenset({"mozilla", "msie"})
_SEPARATORS: Final = re.compile(rb"[,;|&+]|[ \t](?:/|and|or)(?=[ \t])", re.IGNORECASE)
_LIST: Final = re.compile(rb"[,;|]")
_BUT: Final = frozenset(
    {"all", "any", "but", "every", "except", "no", "non", "not", "other", "others", "than", "unless", "without"}
)
"""Words with which a line may mean others than the crawler that it names."""

_QUOTES: Final = "\"'`“”„‘’‚«»<>[](){}"


def _faults(file: CheckedFile) -> Mapping[str, list[Warned]]:
    """Yield each line that is misread, once, with its code."""
    faults: dict[str, list[Warned]] = {}
    for agent in file.agents:
        if agent.token != STAR and (agent.cut or agent.token in _BROWSERS or not agent.token):
            code, warned = _fault(agent)
            faults.setdefault(code, []).append(warned)
    return faults


def _fault(agent: AgentLine) -> tuple[str, Warned]:
    _, line, value, token, _ = agent
    if token in _BROWSERS or (not token and b"(" in value):
        return "header", _header(line, value)
    names = _names(value)
    if len(names) > 1:
        message = f"A User-agent line names one crawler, so {show(value)} is not read as {len(names)}."
        instead = "\n".join(f"User-agent: {name.decode()}" for name in names)
        return "several", Warned(line, f"{message} Give each a line of its own.", instead)
    return ("cut", _cut(line, value, token)) if token else ("empty", _empty(line, value))


def _names(value: bytes) -> list[bytes]:
    """The crawlers of a list; if blanks separate them, only known ones."""
    known = known_agents()
    if _SEPARATORS.search(value) is not None:
        names = [name.strip() for name in _SEPARATORS.split(value[:AGENT_LIMIT])]
        names = [name for name in names if name]
        if _LIST.search(value) is None and not all(name.decode("latin-1").lower() in known for name in names):
            return []
        return names if all(name == b"*" or _TOKEN.fullmatch(name) for name in names) else []
    names = value.split()
    return names if len(names) > 1 and all(name.decode("latin-1").lower() in known for name in names) else []


def _header(line: int, value: bytes) -> Warned:
    what = "is a whole User-Agent header, whose beginning is" if b"(" in value else "is"
    message = f"{show(value)} {what} no crawler's name."
    instead = directive(Key.USER_AGENT, _named(value) or "")
    if _named(value) is None or instead is None:
        return Warned(line, f"{message} Write the crawler's product token, such as ExampleBot.")
    return Warned(line, f"{message} Write {instead!r}.", instead)


def _named(value: bytes) -> str | None:
    """The crawler that a header names, None if it names none."""
    try:
        agent = read_agent(readable(value[: AGENT_LIMIT // 4]))
    except BadAgent:
        return None
    return None if agent.unnamed or agent.token.lower() in _BROWSERS else agent.token


def _empty(line: int, value: bytes) -> Warned:
    if not value:
        message = "This line names no crawler. Write a product token, or '*' for all crawlers."
        return Warned(line, message)
    bare = readable(value).strip(_QUOTES + " \t")
    instead = directive(Key.USER_AGENT, bare) if bare == "*" or _TOKEN.fullmatch(bare.encode()) else None
    message = (
        f"{show(value)} names no crawler. Write a product token such as ExampleBot, or '*' alone for all crawlers."
    )
    return Warned(line, message, instead)


def _cut(line: int, value: bytes, token: str) -> Warned:
    read = value[: len(token)].decode("latin-1")
    message = f"Only {read!r} is read of {show(value)}: names have letters, digits, '-' and '_' only."
    known = known_agents()
    named = dict.fromkeys(part for part in _parts(value) if part in known)
    if len(named) != 1 or not _BUT.isdisjoint(_parts(value)):
        return Warned(line, f"{message} Write the product token of the crawler's User-Agent header.")
    return Warned(line, message, directive(Key.USER_AGENT, known[next(iter(named))].token))


def _parts(value: bytes) -> Iterator[str]:
    return (part.decode("latin-1").lower() for part in _TOKEN.findall(value[:AGENT_LIMIT]))


def empty_agent_token(file: CheckedFile) -> Iterator[Warned]:
    """Values without a product token."""
    yield from file.once(_faults).get("empty", ())


def agent_is_user_agent_header(file: CheckedFile) -> Iterator[Warned]:
    """A whole User-Agent header instead of a product token."""
    yield from file.once(_faults).get("header", ())


def several_agents_in_one_line(file: CheckedFile) -> Iterator[Warned]:
    """Several names, of which only the first is read."""
    yield from file.once(_faults).get("several", ())


def agent_cut_short(file: CheckedFile) -> Iterator[Warned]:
    """Values of which only the beginning is read."""
    yield from file.once(_faults).get("cut", ())


def misspelt_agent(file: CheckedFile) -> Iterator[Warned]:
    """Names that differ from a known crawler's by a slip, in a file that does not name that one itself."""
    named = {agent.token for agent in file.agents}
    for agent in file.agents:
        meant = None if agent.cut else meant_crawler(agent.token)
        if meant is not None and meant.lower() not in named:
            instead = directive(Key.USER_AGENT, meant)
            message = f"No crawler {show(agent.value)} is known. Write {instead!r} if that one is meant."
            yield Warned(agent.line, message, instead)
