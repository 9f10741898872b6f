"""Encode decisions as JSON, with the parts that many answers share encoded once.

`serialize` defines the content of an answer. Its members are cached as encoded fragments, keyed by all they depend on:
answers from one revision of a file for the same agent and rule differ only in their URL and the file's age. A decision
without a revision is encoded afresh.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, lru_cache
from math import inf
from typing import Final

import msgspec
from pydantic_core import to_json

from app.api.answers.answer_tags import VOLATILE, EntityTag, content_digest, tag_of
from app.api.answers.serialize import answer_out, edge_out, purposes_out
from app.cache.byte_lru import ByteLRU
from app.cache.freshness import Freshness
from app.decisions.evaluate import Decision
from app.edge.facts import EdgeFact
from robots_core.purposes.judge import Judgements
from robots_core.robots.lines import codes_of
from robots_core.robots.usage import USAGE_KEYS
from robots_core.robots.verdict import Permission
from robots_core.times import instant

CACHE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of memory for fragments in one process, by default: enough for those of PARSED_FILES usual files."""

_OVERHEAD: Final = 2000  # bytes of an entry besides its JSON: the key, the objects, its place in the cache

_Members = dict[str, object]
"""Members of a JSON object, in order. Values other than strings, integers, booleans and null are fragments."""

_APART: Final = frozenset({"url", "purposes", "sitemaps", "more_sitemaps", "robots"})
"""Members that rows do not share; `edge`, the last one, is not shared either."""

_USAGE: Final = codes_of(USAGE_KEYS)


class _Row:
    """The members of an answer, with null for those that rows do not share, from `since` until `until` (Unix)."""

    def __init__(self, members: _Members, since: float, until: float) -> None:
        self.members = members
        self.since = since
        self.until = until
        self._chosen: tuple[Sequence[str], bytes] = ((), b"{}")

    def only(self, fields: Sequence[str]) -> _Members:
        """These members, of those that there are."""
        members = self.members
        return {name: members[name] for name in fields if name in members}

    def encoded(self, fields: Sequence[str]) -> bytes:
        """The JSON of these members, which rows share. It is kept until others are asked for: a batch asks for the
        same."""
        known, encoded = self._chosen
        if known != fields:
            encoded = msgspec.json.encode(self.only(fields))
            self._chosen = fields, encoded
        return encoded

    @cached_property
    def digest(self) -> bytes:
        """The digest of the members, which no batch needs."""
        return content_digest(msgspec.json.encode(self.members))


class _File:
    """The sitemaps and the facts of the fetch, encoded again when the age has changed by a second.

    `states_usage`: there are usage preferences, which may depend on the path.
    """

    def __init__(self, sitemaps: object, more_sitemaps: int, facts: _Members, *, states_usage: bool) -> None:
        self.sitemaps = sitemaps
        self.more_sitemaps = more_sitemaps
        self.facts = facts
        self.states_usage = states_usage
        self._encoded: tuple[int, int, msgspec.Raw] | None = None

    @cached_property
    def digest(self) -> bytes:
        """The digest of the sitemaps and the facts, VOLATILE ones apart."""
        lasting = {name: value for name, value in self.facts.items() if name not in VOLATILE}
        return content_digest(msgspec.json.encode([self.sitemaps, self.more_sitemaps, lasting]))

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
        self._rows: ByteLRU[Hashable, _Row] = ByteLRU(limit * 3 // 4)
        self._files: ByteLRU[Hashable, _File] = ByteLRU(limit // 4)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the cached entries."""
        sizes, entries = zip(self._rows.usage, self._files.usage, strict=True)
        return sum(sizes), sum(entries)

    def encode(self, decision: Decision, fields: Sequence[str] | None = None, *, explained: bool = False) -> bytes:
        """Encode the answer to `GET /v1/allowed`, with its details if `explained`.

        Unless None, it has only `fields`, which are in the order of an answer's members.
        """
        if explained or not _has_fragments(decision):
            include = None if fields is None else set(fields)
            return answer_out(decision, explained=explained).model_dump_json(include=include).encode()
        row, file = self._cached(decision)
        if fields is not None and decision.edge is None and _APART.isdisjoint(fields):
            return row.encoded(fields)
        return msgspec.json.encode(self._members(decision, row, file, fields))

    def encode_tagged(self, decision: Decision, *, explained: bool) -> tuple[bytes, EntityTag]:
        """Encode the answer to `GET /v1/allowed`, and make its tag of what it says, but for VOLATILE members."""
        if explained or not _has_fragments(decision):
            out = answer_out(decision, explained=explained)
            lasting = out.model_dump_json(exclude={"robots": set(VOLATILE)})
            return out.model_dump_json().encode(), tag_of(lasting.encode())
        row, file = self._cached(decision)
        members = self._members(decision, row, file, None)
        own = [members.get(name) for name in ("url", "purposes", "edge")]
        return msgspec.json.encode(members), tag_of(row.digest, file.digest, msgspec.json.encode(own))

    def _members(self, decision: Decision, row: _Row, file: _File, fields: Sequence[str] | None) -> _Members:
        members = row.members.copy() if fields is None else row.only(fields)
        if fields is None or not _APART.isdisjoint(fields):
            self._fill(members, decision, file)
        if decision.edge is not None and (fields is None or "edge" in fields):
            members["edge"] = _edge(decision.edge)
        return members

    def _fill(self, members: _Members, decision: Decision, file: _File) -> None:
        """Set those of _APART that are among the members."""
        if "url" in members:
            members["url"] = decision.question.target.url
        if "purposes" in members:
            if decision.purposes is None:
                del members["purposes"]
            else:
                members["purposes"] = _purposes(decision.purposes)
        if "sitemaps" in members:
            members["sitemaps"] = file.sitemaps
        if "more_sitemaps" in members:
            members["more_sitemaps"] = file.more_sitemaps
        if "robots" in members and decision.cached.freshness is not None:
            members["robots"] = file.facts_at(decision.cached.freshness)

    def _cached(self, decision: Decision) -> tuple[_Row, _File]:
        question, cached, revision = decision.question, decision.cached, decision.revision
        _, reason, rule, selection = decision.verdict
        file_key = (revision, cached.source, cached.freshness is not None and cached.freshness.stale)
        file = self._files.get(file_key)
        line, token = rule.directive[0] if rule else 0, selection.token if selection else ""
        agent = question.agent
        # What rates and notes depend on: AGENTS_FILE may change it while the file stays the same.
        read = (agent.token, agent.names, agent.unnamed, agent.unlisted, agent.star_delay)
        row_key: Hashable = (revision, question.dialect.name, read, reason, line, token)
        usage = decision.usage if file is None or file.states_usage else None
        star = decision.star
        if usage is not None or star is not None or decision.purposes is not None:
            # All three depend on the path, and the sentence on the last two.
            number, other = None if usage is None else usage.number, None if star is None else star.rule
            row_key = row_key, number, star is not None, other and other.directive.line, decision.purposes
        row = self._rows.get(row_key)
        if row is not None and row.until != inf:
            at = decision.now if question.at is None else question.at.timestamp()
            row = row if row.since <= at < row.until else None
        if row is None or file is None:
            row, file = _parts(decision)
            self._rows.put(row_key, row, _size({**row.members, "chosen": row.members}))
            self._files.put(file_key, file, _size({"sitemaps": file.sitemaps, **file.facts, "encoded": file.facts}))
        return row, file


def _has_fragments(decision: Decision) -> bool:
    known = decision.revision is not None and decision.cached.freshness is not None
    return known and decision.verdict.permission is not Permission.DEFER


def _parts(decision: Decision) -> tuple[_Row, _File]:
    out, robots = answer_out(decision, explained=False), decision.robots
    members = {name: _value(value) for name, value in out if name != "edge" and (name, value) != ("notes", None)}
    states_usage = robots is not None and bool(robots.positions(_USAGE))
    file = _File(members["sitemaps"], out.more_sitemaps, dict(out.robots), states_usage=states_usage)
    members |= dict.fromkeys(_APART)
    change = decision.valid_until
    since, until = (-inf, inf) if change is None else (decision.at.timestamp(), change.timestamp())
    return _Row(members, since, until), file


@lru_cache(1024)
def _purposes(judgements: Judgements) -> msgspec.Raw:
    return _fragment(purposes_out(judgements))


@lru_cache(1024)
def _edge(fact: EdgeFact) -> msgspec.Raw:
    return _fragment(edge_out(fact))


def _value(value: object) -> object:
    return value if value is None or isinstance(value, str | bool | int) else _fragment(value)


def _fragment(value: object) -> msgspec.Raw:
    """The JSON of a model, or of what contains models."""
    return msgspec.Raw(to_json(value))


def _size(members: Mapping[str, object]) -> int:
    return _OVERHEAD + len(msgspec.json.encode(members))
