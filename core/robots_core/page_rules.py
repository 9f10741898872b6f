"""Whether a page may be crawled, indexed, followed, archived and quoted: its tags and its URL's verdict; pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from robots_core.notes import Note
from robots_core.purposes.judge import Judgements, PurposeState
from robots_core.purposes.page import ROBOTS_TXT, PageField, PageSource
from robots_core.robots.agents import STAR
from robots_core.robots.indexing import RULES_LIMIT, Indexing
from robots_core.robots.lines import readable
from robots_core.robots.verdict import Permission, Reason, Verdict
from robots_core.tag_notes import tag_notes

NOINDEX_UNREACHABLE: Final = "noindex-unreachable"
"""The page may not be crawled, so its noindex is never read (spec H15)."""

UNREAD: Final = "tags-unread"
"""The page has more headers and meta tags about crawlers than are read, so its rules may be stricter (spec H4)."""

POLICY: Final = "policy"
"""Where a source is that is neither the page nor robots.txt: the purposes that the caller enforces."""

_AFTER: Final = "unavailable_after:"

# The permissions of an indexer, and the rules in plain form that take each away.
_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "index": ("noindex", "none"),
    "follow": ("nofollow", "none"),
    "archive": ("noarchive", "noindex", "none"),
    "snippet": ("nosnippet", "max-snippet:0"),
}
_ROBOTS_TAG_RULES: Final = frozenset({"noindex", "nosnippet"})


@dataclass(frozen=True, slots=True)
class PageRules:
    """What a page and its URL's verdict come to at an instant.

    `crawl` is None where no verdict is known. `decided_by` names what took a permission away, and for `crawl` the rule
    that decided either way, or the purpose that the caller's policy enforces and the site refuses.
    `implied` are rules that follow from others: noarchive from noindex (spec H13), and noindex from an
    `unavailable_after` that has passed (H14). `pending` are rules that are not in force yet.
    """

    crawl: bool | None
    index: bool
    follow: bool
    archive: bool
    snippet: bool
    decided_by: Mapping[str, PageSource]
    implied: tuple[str, ...]
    pending: tuple[str, ...]
    notes: tuple[Note, ...]


def join(
    found: Indexing,
    verdict: Verdict | None,
    at: datetime,
    purposes: Judgements | None = None,
    unread: int = 0,
    agents: Collection[str] = (),
) -> PageRules:
    """Join the effective rules of a page with the verdict on its URL, at an aware instant.

    `purposes` are the judgements that decided where the verdict's reason is USAGE. `unread`: how many of the page's
    statements were not read, besides those of `found`. `agents` are the agent's names, in lower case.
    """
    decided = {name: source for name, rules in _RULES.items() if (source := _source(found, rules)) is not None}
    implied, pending = [], []
    expires = next((it for it in found.sources if it.rule.startswith(_AFTER)), None)
    if expires is not None and found.unavailable_after is not None:
        if at < found.unavailable_after:
            pending.append(expires.rule)
        else:
            source = PageSource(expires.where, expires.agent, expires.rule)
            decided = {"index": source, "archive": source, **decided}
            if "noindex" not in found.rules:
                implied.append("noindex")
    if "index" in decided and "noarchive" not in found.rules:
        implied.append("noarchive")
    crawl = _decided_crawl(verdict, purposes)
    if crawl is not None:
        decided["crawl"] = crawl
    return PageRules(
        crawl=None if verdict is None else verdict.permission is Permission.ALLOW,
        index="index" not in decided,
        follow="follow" not in decided,
        archive="archive" not in decided,
        snippet="snippet" not in decided,
        decided_by=decided,
        implied=tuple(implied),
        pending=tuple(pending),
        notes=(*_notes(decided, verdict, found.unread + unread), *tag_notes(found.unknown, agents)),
    )


def robots_tags(fields: Iterable[PageField], agents: Iterable[str]) -> Iterator[PageSource]:
    """The rules of Robots-Tag fields for these agents, which are reported and not enforced (spec H11).

    A field is `token=rules; token=rules`; `*` or no token addresses all.
    """
    own = {agent.lower() for agent in agents}
    for where, name, value in fields:
        if name != "robots-tag":
            continue
        for part in value[:RULES_LIMIT].split(";"):
            addressed, equals, rules = part.partition("=")
            agent = addressed.strip().lower() if equals else STAR
            if agent == STAR or agent in own:
                for rule in (rules if equals else addressed).split(","):
                    if rule.strip().lower() in _ROBOTS_TAG_RULES:
                        yield PageSource(where, None if agent == STAR else agent, rule.strip().lower())


def _source(found: Indexing, rules: tuple[str, ...]) -> PageSource | None:
    sources = (PageSource(it.where, it.agent, it.rule) for rule in rules for it in found.sources if it.rule == rule)
    return next(sources, None)


def _decided_crawl(verdict: Verdict | None, purposes: Judgements | None) -> PageSource | None:
    if verdict is None:
        return None
    if verdict.rule is not None:
        line, key, value = verdict.rule.directive
        return PageSource(ROBOTS_TXT, None, f"{key}: {readable(value)}", line)
    if verdict.reason is Reason.USAGE and purposes is not None:
        # robots.txt permits the fetch; only the caller's policy makes of its statement about a purpose a disallow.
        refused = (purpose for purpose, judged in purposes.by_purpose.items() if judged.state is PurposeState.NO)
        return next((PageSource(POLICY, None, purpose) for purpose in refused), None)
    return None


def _notes(decided: Mapping[str, PageSource], verdict: Verdict | None, unread: int) -> Iterator[Note]:
    if unread:
        yield Note(
            UNREAD, f"{unread} headers or meta tags about crawlers are past the limit and were not read. Send fewer."
        )
    closed = verdict is not None and verdict.permission is Permission.DISALLOW and verdict.reason is not Reason.USAGE
    if not closed or "index" not in decided:
        return
    closing = decided.get("crawl")
    by = "" if closing is None else f" (line {closing.line}: {closing.rule})"
    index = decided["index"]
    yield Note(
        NOINDEX_UNREACHABLE,
        f"This URL may not be crawled{by}, so {index.rule!r} ({index.where}) is never read and the URL may still be"
        " listed. Let the page be crawled for its noindex to count.",
    )
