"""Checks of Request-rate, Crawl-delay and Visit-time: invalid values, and crawlers that ignore a line (spec F, G)."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from robots_core.lint.advice import Warned, directive
from robots_core.lint.checked_file import CheckedFile
from robots_core.robots.agents import STAR, known_agents
from robots_core.robots.lines import Directive, Key, codes_of
from robots_core.robots.rates import (
    SEZNAM_RATES,
    CrawlDelay,
    RateWarning,
    RateWarningCode,
    RequestRate,
    clamp_warnings,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
)

LARGE: Final = 10
"""Seconds of Crawl-delay above which a line is reported: 1 to 10 is usual (spec G2)."""

_NAMED: Final = 3
"""Crawlers that a message names."""

_SEZNAM: Final = "seznambot"

_KEYS: Final = (Key.REQUEST_RATE, Key.CRAWL_DELAY, Key.VISIT_TIME)
_DELAY: Final = re.compile(r"([0-9]{0,9}+)(?:[.,]([0-9]{1,3}+))?+[ \t]*+(?:s|secs?|seconds?)?", re.IGNORECASE)
_HOURS: Final = re.compile(r"([0-9]{1,2})[ \t]*+(?:-|–|to)[ \t]*+([0-9]{1,2})", re.IGNORECASE)
_WINDOW_AT_END: Final = re.compile(r"([0-9]+/[0-9]+[a-z]?)[ \t]++(\S.*)", re.IGNORECASE)


class _RateLine(NamedTuple):
    """A line, the number of its group (or -1), and its parsed value."""

    directive: Directive
    group: int
    value: object
    warning: RateWarning | None


def _read(file: CheckedFile) -> list[_RateLine]:
    found: list[_RateLine] = []
    for position in file.positions(codes_of(_KEYS)):
        line = file.scan.directive(position)
        match line.key:
            case Key.REQUEST_RATE:
                parsed: object = (rate := read_request_rate(line.text, line.line)).value
                warning = rate.warning
            case Key.CRAWL_DELAY:
                parsed = (delay := read_crawl_delay(line.text, line.line)).value
                warning = delay.warning
            case _:
                parsed = (visit := read_visit_time(line.text, line.line)).value
                warning = visit.warning
        found.append(_RateLine(line, file.group_at(position), parsed, warning))
    return found


def unread_rates(code: RateWarningCode) -> Callable[[CheckedFile], Iterator[Warned]]:
    """A check for lines whose parsing causes this warning."""

    def check(file: CheckedFile) -> Iterator[Warned]:
        for line, _, _, warning in file.once(_read):
            if warning is not None and warning.code is code:
                instead = _meant(line)
                message = warning.message + (f" Write {instead!r}." if instead else "")
                yield Warned(line.line, message, instead)

    return check


def _meant(line: Directive) -> str | None:
    """The line with a valid number or window, if the intended one is clear."""
    text = line.text
    if line.key is Key.CRAWL_DELAY:
        delay = _DELAY.fullmatch(text.strip("[]\"' \t,;").removesuffix("."))
        if delay is None or not (delay[1] or delay[2]):
            return None
        return directive(line.key, f"{int(delay[1] or 0)}" + (f".{delay[2]}" if delay[2] else ""))
    rate = _WINDOW_AT_END.fullmatch(text) if line.key is Key.REQUEST_RATE else None
    hours = _HOURS.fullmatch(rate[2] if rate else text)
    if hours is None or int(hours[1]) > 23 or int(hours[2]) > 24:
        return None
    window = f"{int(hours[1]):02}00-{int(hours[2]):02}00"
    return directive(line.key, f"{rate[1]} {window}" if rate else window)


def rate_clamped(file: CheckedFile) -> Iterator[Warned]:
    """Rates slower than SeznamBot obeys, in a group that binds it (spec F7)."""
    for line, group, value, _ in file.once(_read):
        if isinstance(value, RequestRate) and not file.tokens.get(group, set()).isdisjoint({_SEZNAM, STAR}):
            for warning in clamp_warnings([value], None, SEZNAM_RATES):
                window = line.text.partition(" ")[2] if value.window else ""
                yield Warned(line.line, warning.message, directive(line.key, f"1/10s {window}".strip()))


def _ignoring() -> Mapping[str, str]:
    """The names of crawlers that ignore Crawl-delay, by token (spec F14, G2)."""
    ignoring = {token: agent.token for token, agent in known_agents().items() if agent.crawl_delay is False}
    return ignoring | {"yandex": "Yandex"}  # the common token of Yandex's crawlers, not a crawler itself


_IGNORING: Final = _ignoring()


def _delays(file: CheckedFile) -> Iterator[tuple[Directive, CrawlDelay, set[str]]]:
    """The Crawl-delay lines of groups, with the tokens of the group."""
    for line, group, value, _ in file.once(_read):
        if isinstance(value, CrawlDelay) and group in file.tokens:
            yield line, value, file.tokens[group]


def crawl_delay_ignored(file: CheckedFile) -> Iterator[Warned]:
    """A Crawl-delay in a group that names a crawler that does not obey it."""
    for line, delay, tokens in _delays(file):
        ignoring = sorted(_IGNORING[token] for token in tokens & _IGNORING.keys())
        if not ignoring:
            continue
        more = f" and {len(ignoring) - _NAMED} more" if len(ignoring) > _NAMED else ""
        names = ", ".join(ignoring[:_NAMED]) + more
        message = f"{names} {'ignores' if len(ignoring) == 1 else 'ignore'} Crawl-delay."
        if tokens == {_SEZNAM} and 1 <= delay.seconds == int(delay.seconds):
            instead = f"Request-rate: 1/{int(delay.seconds)}s"
            yield Warned(line.line, f"{message} Write {instead!r}.", instead)
        else:
            yield Warned(line.line, f"{message} To slow a crawler down for a while, answer with status 429 or 503.")


def crawl_delay_large(file: CheckedFile) -> Iterator[Warned]:
    """A Crawl-delay that leaves few pages a day."""
    for line, delay, tokens in _delays(file):
        if delay.seconds > LARGE and not tokens <= _IGNORING.keys():
            pages = int(86_400 / delay.seconds)
            limit = f"at most {pages:,} page{'' if pages == 1 else 's'} a day" if pages else "less than a page a day"
            message = f"A Crawl-delay of {delay.seconds:g} s lets a crawler fetch {limit}."
            yield Warned(line.line, f"{message} 1 to {LARGE} s is usual.", f"Crawl-delay: {LARGE}")
