"""Encode decisions as JSON, with the parts that many answers share encoded once.

`serialize` defines the content of an answer. Its members are cached as encoded fragments, keyed by all they depend on:
answers from one revision of a file for the same agent and rule differ only in their URL and the file's age. A decision
without a revision is encoded afresh.
"""

from collections.abc import Collection, Hashable, Mapping
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

import msgspec
from pydantic import BaseModel

from app.api.fragments import fragment, purposes_fragment
from app.api.serialize import answer_out, edge_out, usage_out
from app.cache.byte_lru import ByteLRU
from app.cache.freshness import Freshness
from app.edge.facts import EdgeFact
from app.evaluate import Decision
from app.instants import instant
from robots_core.robots.verdict import Permission, Reason

CACHE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of memory for fragments in one process, by default: enough for those of PARSED_FILES usual files."""

_OVERHEAD: Final = 2000  # bytes of an entry besides its JSON: the key, the objects, its place in the cache

_Members = dict[str, object]
"""Members of a JSON object, in order. Values other than strings, integers, booleans and null are fragments."""

_APART: Final = frozenset({"purposes", "edge"})
"""Members that are encoded for each answer, if it has them."""


class _Row(NamedTuple):
    """The members of an answer, with null for those of the URL and the file, valid from `since` until `until` (Unix).

    `has_usage`: the file states usage preferences, which may depend on the path.
    """

    members: _Members
    since: float
    until: float
    has_usage: bool


class _File:
    """The sitemaps and the facts of the fetch, encoded anew when the age has changed by a second."""

    def __init__(self, sitemaps: object, more_sitemaps: int, facts: _Members) -> None:
        self.sitemaps = sitemaps
        self.more_sitemaps = more_sitemaps
        self.facts = facts
        self._encoded: tuple[int, int, msgspec.Raw] | None = None

    def facts_at(self, freshness: Freshness) -> msgspec.Raw:
        """The facts with the age and the recheck time of `freshness`."""
        age, recheck_at = int(freshness.age), int(freshness.recheck_at)
        encoded = self._encoded
        if encoded is None or encoded[0] != age or encoded[1] != recheck_at:
            facts = {**self.facts, "recheck_at": instant(recheck_at), "age": age}
            encoded = self._encoded = age, recheck_at, msgspec.Raw(msgspec.json.encode(facts))
        return encoded[2]


class AnswerEncoder:
    """Encodes decisions, with a cache of at most `limit` bytes of fragments."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._rows: ByteLRU[Hashable, _Row] = ByteLRU(limit // 2)
        self._files: ByteLRU[Hashable, _File] = ByteLRU(limit // 4)
        self._statements: ByteLRU[Hashable, _Members] = ByteLRU(limit // 4)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the cached entries."""
        sizes, entries = zip(*(cache.usage for cache in (self._rows, self._files, self._statements)), strict=True)
        return sum(sizes), sum(entries)

    def encode(self, decision: Decision, fields: Collection[str] | None = None) -> bytes:
        """Encode the answer to `GET /v1/allowed` without its details; only its members `fields`, unless None."""
        members = self._members(decision, with_facts=fields is None or "robots" in fields)
        if fields is not None:
            members = {name: members[name] for name in fields if name in members}
        return msgspec.json.encode(members)

    def _members(self, decision: Decision, *, with_facts: bool) -> _Members:
        freshness, verdict = decision.cached.freshness, decision.verdict
        if decision.revision is None or freshness is None or verdict.permission is Permission.DEFER:
            optional: _Members = {} if decision.purposes is None else {"purposes": purposes_fragment(decision.purposes)}
            if decision.edge is not None:
                optional["edge"] = _edge(decision.edge)
            return {**_members(answer_out(decision, explained=False)), **optional}
        row_key, row, file = self._cached(decision)
        members = row.members.copy()
        members["url"] = decision.question.target.url
        if row.has_usage:
            members.update(self._statements_of(decision, row_key))
        if decision.purposes is not None:
            members["purposes"] = purposes_fragment(decision.purposes)
        members["sitemaps"], members["more_sitemaps"] = file.sitemaps, file.more_sitemaps
        if with_facts:
            members["robots"] = file.facts_at(freshness)
        if decision.edge is not None:
            members["edge"] = _edge(decision.edge)
        return members

    def _statements_of(self, decision: Decision, row_key: Hashable) -> _Members:
        """The members that depend on the path by the statements about its use alone."""
        usage, refused = decision.usage, decision.verdict.reason is Reason.USAGE
        key = (row_key, None if usage is None else usage.number, decision.purposes if refused else None)
        members = self._statements.get(key)
        if members is None:
            members = {"usage": None if usage is None else fragment(usage_out(usage))}
            if refused:
                members["explanation"] = fragment(answer_out(decision, explained=False).explanation)
            self._statements.put(key, members, _size(members))
        return members

    def _cached(self, decision: Decision) -> tuple[Hashable, _Row, _File]:
        question, cached, revision = decision.question, decision.cached, decision.revision
        _, reason, rule, selection = decision.verdict
        line, token = rule.directive[0] if rule else 0, selection.token if selection else ""
        agent = question.agent
        # What rates and notes depend on: AGENTS_FILE may change it while the file stays the same.
        read = (agent.token, agent.names, agent.unnamed, agent.unlisted, agent.star_delay)
        row_key = (revision, question.dialect.name, read, reason, line, token)
        file_key = (revision, cached.source, cached.freshness is not None and cached.freshness.stale)
        row, file = self._rows.get(row_key), self._files.get(file_key)
        if row is not None and row.until != inf:
            at = decision.now if question.at is None else question.at.timestamp()
            row = row if row.since <= at < row.until else None
        if row is None or file is None:
            row, file = _parts(decision)
            self._rows.put(row_key, row, _size(row.members))
            self._files.put(file_key, file, _size({"sitemaps": file.sitemaps, **file.facts, "encoded": file.facts}))
        return row_key, row, file


def _parts(decision: Decision) -> tuple[_Row, _File]:
    out = answer_out(decision, explained=False)
    members = _members(out)
    file = _File(members["sitemaps"], out.more_sitemaps, dict(out.robots))
    members |= dict.fromkeys(("url", "sitemaps", "more_sitemaps", "robots"))
    change = decision.valid_until
    since, until = (-inf, inf) if change is None else (decision.at.timestamp(), change.timestamp())
    terms = decision.terms
    return _Row(members, since, until, terms is not None and terms.usage is not None), file


@lru_cache(1024)
def _edge(fact: EdgeFact) -> msgspec.Raw:
    return fragment(edge_out(fact))


def _members(out: BaseModel) -> _Members:
    return {name: _value(value) for name, value in out if name not in _APART and (name, value) != ("notes", None)}


def _value(value: object) -> object:
    return value if value is None or isinstance(value, str | bool | int) else fragment(value)


def _size(members: Mapping[str, object]) -> int:
    return _OVERHEAD + len(msgspec.json.encode(members))
