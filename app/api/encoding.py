"""Encode decisions as JSON, with the parts that many answers share encoded once.

`serialize` says what an answer looks like. The members of its object are kept as encoded fragments, under everything
they depend on: answers from one revision of a file differ in their URL and the file's age, and those with the same
agent and rule in nothing else. A decision without a revision is encoded afresh.
"""

from collections.abc import Hashable, Mapping
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

import orjson
from pydantic import BaseModel
from pydantic_core import to_json

from app.api.problems import Problem
from app.api.serialize import answer_out, instant, usage_out
from app.cache.byte_lru import ByteLRU
from app.evaluate import Decision
from app.robots.verdict import Permission

CACHE_BYTES: Final = 16 * 1024 * 1024
"""The memory that one process spends on fragments, unless the settings say otherwise."""

_OVERHEAD: Final = 2000  # bytes of an entry besides its JSON: the key, the objects, its place in the cache

_Members = dict[str, object]
"""Members of a JSON object, in their order; those that are not strings, whole numbers or null are fragments."""

_NO_MEMBERS: Final[Mapping[str, object]] = {}


class _Row(NamedTuple):
    """The members, with null for the URL and what is about the file, from `since` up to `until` (Unix seconds).

    `has_usage`: the file states usages, and which of them hold depends on the path.
    """

    members: _Members
    since: float
    until: float
    has_usage: bool


class _File(NamedTuple):
    """The sitemaps, and the facts of the fetch, whose `recheck_at` and `age` are out of date."""

    sitemaps: object
    more_sitemaps: int
    facts: _Members


class AnswerEncoder:
    """Encodes decisions, and keeps fragments of at most `limit` bytes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._rows: ByteLRU[Hashable, _Row] = ByteLRU(limit // 2)
        self._files: ByteLRU[Hashable, _File] = ByteLRU(limit // 2)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the cached entries."""
        return self._rows.usage[0] + self._files.usage[0], self._rows.usage[1] + self._files.usage[1]

    def encode(self, decision: Decision, more: Mapping[str, object] = _NO_MEMBERS) -> bytes:
        """The answer to `GET /v1/allowed` without an explanation, and the members `more` behind its own."""
        freshness, verdict = decision.cached.freshness, decision.verdict
        if decision.revision is None or freshness is None or verdict.permission is Permission.DEFER:
            return orjson.dumps({**_members(answer_out(decision, explained=False)), **more})
        row, file = self._cached(decision)
        members = row.members.copy()
        members["url"] = decision.question.target.url
        if row.has_usage:
            usage = decision.usage
            members["usage"] = None if usage is None else _fragment(usage_out(usage))
        facts = file.facts.copy()
        facts["recheck_at"], facts["age"] = _instant(int(freshness.recheck_at)), int(freshness.age)
        members["sitemaps"], members["more_sitemaps"], members["robots"] = file.sitemaps, file.more_sitemaps, facts
        if more:
            members.update(more)
        return orjson.dumps(members)

    def _cached(self, decision: Decision) -> tuple[_Row, _File]:
        question, cached, revision = decision.question, decision.cached, decision.revision
        _, reason, rule, selection = decision.verdict
        line, token = rule.directive[0] if rule else 0, selection.token if selection else ""
        row_key = (revision, question.dialect.name, question.agent.token, reason, line, token)
        file_key = (revision, cached.source, cached.freshness is not None and cached.freshness.stale)
        row, file = self._rows.get(row_key), self._files.get(file_key)
        if row is not None and row.until != inf:
            at = decision.now if question.at is None else question.at.timestamp()
            row = row if row.since <= at < row.until else None
        if row is None or file is None:
            row, file = _parts(decision)
            self._rows.put(row_key, row, _size(row.members))
            self._files.put(file_key, file, _size({"sitemaps": file.sitemaps, **file.facts}))
        return row, file


def encode_problem(problem: Problem) -> bytes:
    """The JSON in place of an item's answer; an answer has no member `problem`."""
    return orjson.dumps({"problem": orjson.Fragment(problem.text)})


def _parts(decision: Decision) -> tuple[_Row, _File]:
    out = answer_out(decision, explained=False)
    members = _members(out)
    file = _File(members["sitemaps"], out.more_sitemaps, dict(out.robots))
    members |= dict.fromkeys(("url", "sitemaps", "more_sitemaps", "robots"))
    change = decision.valid_until
    since, until = (-inf, inf) if change is None else (decision.at.timestamp(), change.timestamp())
    terms = decision.terms
    return _Row(members, since, until, terms is not None and terms.usage is not None), file


def _members(out: BaseModel) -> _Members:
    return {name: _value(value) for name, value in out if name != "explanation"}


def _value(value: object) -> object:
    return value if value is None or isinstance(value, str | bool | int) else _fragment(value)


def _fragment(value: object) -> orjson.Fragment:
    # pydantic encodes integers of any size: a Request-rate may have some that orjson refuses.
    return orjson.Fragment(to_json(value))


def _size(members: Mapping[str, object]) -> int:
    return _OVERHEAD + len(orjson.dumps(members))


_instant = lru_cache(4096)(instant)
