"""What a page's own headers and tags state about purposes, combined with what robots.txt states (spec H16, I1f)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from robots_core.purposes.judge import PREFERENCES, SIGNALS, Judgements, PurposeState, strongest
from robots_core.purposes.policy import PURPOSES, Purpose
from robots_core.robots.indexing import IndexingSource
from robots_core.robots.usage import read_dictionary, signal_parts

TDM_RESERVATION: Final = "tdm-reservation"
TDM_POLICY: Final = "tdm-policy"
CONTENT_USAGE: Final = "content-usage"
CONTENT_SIGNAL: Final = "content-signal"

STATED_LIMIT: Final = 200
"""How many header fields and meta tags about purposes are read; others do not count."""

_REFUSALS: Final = frozenset({"noai", "noimageai", "noml"})
"""Rules of X-Robots-Tag and robots meta tags that refuse training."""

# TDMRep reserves text and data mining, of which training is what a crawler's operator does with pages.
_TDM_STATES: Final = {"0": PurposeState.YES, "1": PurposeState.NO}
# Headers, unlike robots.txt (spec I9), are also sent with these words, by software that sites run as it comes.
_WORDS: Final = {"allow": PurposeState.YES, "disallow": PurposeState.NO}
_USES: Final = PREFERENCES | _WORDS
_SIGNALS: Final = SIGNALS | _WORDS
_PURPOSES: Final[Mapping[str, Purpose]] = {purpose: purpose for purpose in PURPOSES}
_CATEGORIES: Final[Mapping[str, Purpose]] = {"search": "search", "train-ai": "ai-train"}
ROBOTS_TXT: Final = "robots.txt"


class PageField(NamedTuple):
    """A header field or meta tag: its name in lower case and its value; `where` is `header 1` or `meta 2`."""

    where: str
    name: str
    value: str


class PageSource(NamedTuple):
    """Where something is stated: `robots.txt` and a line, or a header or meta tag and the agent that it names."""

    where: str
    agent: str | None
    rule: str
    line: int | None = None


class PagePurpose(NamedTuple):
    """The state of a purpose for a page, and where that is stated; None where nothing is."""

    state: PurposeState
    source: PageSource | None = None


def judge_page(
    robots: Judgements, fields: Iterable[PageField], tags: Iterable[IndexingSource]
) -> Mapping[Purpose, PagePurpose]:
    """Each purpose of `robots` for a page: a no wins, then a yes; of those that say the same, the first.

    robots.txt comes first, then header fields and meta tags in their order, then the effective indexing rules `tags`.
    """
    stated = [*_of_fields(islice(filter(_is_stated, fields), STATED_LIMIT)), *_of_tags(tags)]
    return {purpose: _judge(purpose, robots, stated) for purpose in robots.by_purpose}


def unread_fields(fields: Iterable[PageField]) -> int:
    """How many fields about purposes `judge_page` leaves out."""
    return max(0, sum(map(_is_stated, fields)) - STATED_LIMIT)


def _is_stated(field: PageField) -> bool:
    return field.name in (CONTENT_USAGE, CONTENT_SIGNAL, TDM_RESERVATION)


def unknown_words(fields: Iterable[PageField]) -> Iterator[IndexingSource]:
    """The fields about purposes that say something in words which are not known, so that it has no effect."""
    for where, name, value in islice(filter(_is_stated, fields), STATED_LIMIT):
        if not _is_known(name, value):
            yield IndexingSource(where, None, f"{name}: {value.strip()}")


def _is_known(name: str, value: str) -> bool:
    text = value.encode("utf-8", "replace")
    if name == CONTENT_SIGNAL:
        parts = signal_parts(text)
        return all(p and s and p != "train-ai" and (p not in _PURPOSES or s in _SIGNALS) for p, s in parts)
    if name == CONTENT_USAGE:
        stated = read_dictionary(text)
        return stated is not None and all(
            category != "ai-train" and (category not in _CATEGORIES or use in _USES) for category, use in stated.items()
        )
    return value.strip() in _TDM_STATES


def tdm_policy(fields: Iterable[PageField]) -> str | None:
    """The first tdm-policy that is stated, as written."""
    return next((field.value.strip() for field in fields if field.name == TDM_POLICY and field.value.strip()), None)


_PageStatement = tuple[Purpose, PagePurpose]


def _judge(purpose: Purpose, robots: Judgements, stated: Sequence[_PageStatement]) -> PagePurpose:
    state, directive, line = robots.by_purpose[purpose]
    source = None if directive is None else PageSource(ROBOTS_TXT, None, directive, line)
    judgements = [PagePurpose(state, source), *(judgement for of, judgement in stated if of == purpose)]
    return strongest(judgements) or PagePurpose(PurposeState.UNSTATED)


def _of_fields(fields: Iterable[PageField]) -> Iterator[_PageStatement]:
    for where, name, value in fields:
        if name == CONTENT_USAGE:
            for category, use in (read_dictionary(value.encode("utf-8", "replace")) or {}).items():
                if category in _CATEGORIES and use in _USES:
                    source = PageSource(where, None, f"{name}: {category}={use}")
                    yield _CATEGORIES[category], PagePurpose(_USES[use], source)
        elif name == CONTENT_SIGNAL:
            for purpose, signal in signal_parts(value.encode("utf-8", "replace")):
                if purpose in _PURPOSES and signal in _SIGNALS:
                    source = PageSource(where, None, f"{name}: {purpose}={signal}")
                    yield _PURPOSES[purpose], PagePurpose(_SIGNALS[signal], source)
        elif name == TDM_RESERVATION and value.strip() in _TDM_STATES:
            source = PageSource(where, None, f"{name}: {value.strip()}")
            yield "ai-train", PagePurpose(_TDM_STATES[value.strip()], source)


def _of_tags(tags: Iterable[IndexingSource]) -> Iterator[_PageStatement]:
    for tag in tags:
        if tag.rule in _REFUSALS:
            yield "ai-train", PagePurpose(PurposeState.NO, PageSource(tag.where, tag.agent, tag.rule))
