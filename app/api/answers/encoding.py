"""Encode decisions as JSON, with the parts that many answers share encoded once.

`serialize` defines the content of an answer. Answers from one revision of a file for the same agent and rule differ
only in their URL, in the file's age, and in what callers reported. So nearly all of an answer is two texts, which are
kept: its row, and what it says of the file. A decision without a revision is encoded afresh.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property, lru_cache
from math import inf
from typing import Final

import msgspec

from app.api.answers.answer_tags import VOLATILE, EntityTag, content_digest, tag_of
from app.api.answers.schema import AnswerOut
from app.api.answers.serialize import answer_out, edge_out
from app.cache.byte_lru import ByteLRU
from app.cache.freshness import Freshness
from app.decisions.evaluate import Decision
from app.edge.facts import EdgeFact
from robots_core.robots.agents import STAR
from robots_core.robots.lines import codes_of
from robots_core.robots.usage import USAGE_KEYS
from robots_core.robots.verdict import Permission
from robots_core.times import instant

CACHE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of memory for such texts in one process, by default: enough for those of PARSED_FILES usual files."""

_OVERHEAD: Final = 2000  # bytes of an entry besides its JSON: the key, the objects, its place in the cache

_OF_FILE: Final = {"sitemaps", "more_sitemaps", "licenses", "version"}
"""Members that depend on the file alone. `robots`, the next one, does on its age as well."""

_OF_ROW: Final = set(AnswerOut.model_fields).difference(_OF_FILE, ("url", "robots", "edge"))
"""Members between `url` and those of the file."""

BY_RULE: Final = frozenset(AnswerOut.model_fields).difference(
    ("url", "explanation", "usage", "purposes", "retry_at", "robots", "edge")
)
"""Members that depend on nothing but the file, the crawler, and the rule of the file that decides."""

_USAGE: Final = codes_of(USAGE_KEYS)


class _Fragment:
    """Members of an answer that follow each other, as JSON: each after a comma, and without braces."""

    def __init__(self, members: bytes) -> None:
        self.members = members
        self._chosen: tuple[Sequence[str], bytes] = ((), b"")

    def only(self, fields: Sequence[str] | None) -> bytes:
        """Those of the members that are among `fields`, None for all.

        They are kept until others are asked for: a batch asks for the same.
        """
        if fields is None:
            return self.members
        known, chosen = self._chosen
        if known != fields:
            members = msgspec.json.decode(b"{%b}" % self.members[1:], type=dict[str, msgspec.Raw])
            chosen = b"".join(b',"%b":%b' % (name.encode(), members[name]) for name in fields if name in members)
            self._chosen = fields, chosen
        return chosen


class _Row(_Fragment):
    """The members of _OF_ROW, from `since` until `until` (Unix seconds)."""

    def __init__(self, members: bytes, since: float, until: float) -> None:
        super().__init__(members)
        self.since = since
        self.until = until
        self.size = _OVERHEAD + 2 * len(members)

    @cached_property
    def digest(self) -> bytes:
        """The digest of the members, which no batch needs."""
        return content_digest(self.members)


class _File:
    """What answers say of a file: `part`, the members of _OF_FILE and `robots`, as of `freshness`; and their `rows`.

    `states_usage`: there are usage preferences, which may depend on the path. `size`: the bytes of all of it.
    """

    def __init__(self, members: bytes, facts: dict[str, object], freshness: Freshness, *, states_usage: bool) -> None:
        self.states_usage = states_usage
        self.rows: dict[Hashable, _Row] = {}
        self._members = members
        self._facts = facts
        self.at(freshness)
        self.size = _OVERHEAD + 2 * len(self.part.members)

    @cached_property
    def digest(self) -> bytes:
        """The digest of the members, VOLATILE ones apart."""
        lasting = {name: value for name, value in self._facts.items() if name not in VOLATILE}
        return content_digest(self._members, msgspec.json.encode(lasting))

    def at(self, freshness: Freshness) -> None:
        """Encode the age and the recheck time of `freshness`."""
        self.freshness = freshness
        facts = {**self._facts, "recheck_at": instant(int(freshness.recheck_at)), "age": int(freshness.age)}
        self.part = _Fragment(b'%b,"robots":%b' % (self._members, msgspec.json.encode(facts)))

    def add(self, key: Hashable, row: _Row) -> None:
        """Keep a row, in place of one that has ended."""
        ended = self.rows.get(key)
        self.rows[key] = row
        self.size += row.size - (0 if ended is None else ended.size)


class AnswerEncoder:
    """Encodes decisions, with a cache of at most `limit` bytes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._files: ByteLRU[Hashable, _File] = ByteLRU(limit)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the cached files, with their rows."""
        return self._files.usage

    def encode(self, decision: Decision, fields: Sequence[str] | None = None, *, explained: bool = False) -> bytes:
        """Encode the answer to `GET /v1/allowed`, with its details if `explained`.

        Unless None, it has only `fields`, which are in the order of an answer's members.
        """
        parts = None if explained else self._parts(decision)
        if parts is None:
            include = None if fields is None else set(fields)
            return answer_out(decision, explained=explained).model_dump_json(include=include).encode()
        return _joined(decision, *parts, fields)

    def encode_tagged(self, decision: Decision, *, explained: bool) -> tuple[bytes, EntityTag]:
        """Encode the answer to `GET /v1/allowed`, and make its tag of what it says, but for VOLATILE members."""
        parts = None if explained else self._parts(decision)
        if parts is None:
            out = answer_out(decision, explained=explained)
            lasting = out.model_dump_json(exclude={"robots": set(VOLATILE)})
            return out.model_dump_json().encode(), tag_of(lasting.encode())
        row, file = parts
        own = () if decision.edge is None else (_edge(decision.edge),)
        tag = tag_of(row.digest + file.digest, decision.question.target.url.encode(), *own)
        return _joined(decision, row, file, None), tag

    def _parts(self, decision: Decision) -> tuple[_Row, _File] | None:
        """The parts that other answers share; None if they share none."""
        question, verdict, cached, _, now, _, revision, _, purposes, _, _ = decision
        permission, reason, rule, selection = verdict
        freshness, agent = cached.freshness, question.agent
        if revision is None or freshness is None or permission is Permission.DEFER:
            return None
        file_key = (revision, cached.source, freshness.stale)
        file = self._files.get(file_key)
        if file is not None and file.freshness is not freshness:
            file.at(freshness)
        # What rates and notes depend on: AGENTS_FILE may change it while the file stays the same.
        read = (agent.token, agent.names, agent.unnamed, agent.unlisted, agent.star_delay)
        line, token = rule.directive[0] if rule else 0, selection.token if selection else ""
        key: Hashable = (question.dialect.name, read, reason, line, token)
        usage = decision.usage if file is None or file.states_usage else None
        star = None if token == STAR else decision.star
        if usage is not None or star is not None or purposes is not None:
            # All three depend on the path, and the sentence on the last two.
            number, other = None if usage is None else usage.number, None if star is None else star.rule
            key = key, number, star is not None, other and other.directive.line, purposes
        row = None if file is None else file.rows.get(key)
        if row is not None and row.until != inf:
            at = now if question.at is None else question.at.timestamp()
            row = row if row.since <= at < row.until else None
        if row is None or file is None:
            out = answer_out(decision, explained=False)
            row, file = _row(out, decision), file or _file(out, decision, freshness)
            file.add(key, row)
            self._files.put(file_key, file, file.size)
        return row, file


def _row(out: AnswerOut, decision: Decision) -> _Row:
    change = decision.valid_until
    since, until = (-inf, inf) if change is None else (decision.at.timestamp(), change.timestamp())
    return _Row(_members(out, _OF_ROW), since, until)


def _file(out: AnswerOut, decision: Decision, freshness: Freshness) -> _File:
    robots = decision.robots
    states_usage = robots is not None and bool(robots.positions(_USAGE))
    return _File(_members(out, _OF_FILE), dict(out.robots), freshness, states_usage=states_usage)


def _members(out: AnswerOut, names: set[str]) -> bytes:
    return b"," + out.model_dump_json(include=names).encode()[1:-1]


def _joined(decision: Decision, row: _Row, file: _File, fields: Sequence[str] | None) -> bytes:
    """The JSON of an answer with these parts, in the order of its members."""
    members = row.only(fields) + file.part.only(fields)
    edge = decision.edge
    if edge is not None and (fields is None or "edge" in fields):
        members += b',"edge":%b' % _edge(edge)
    if fields is None or "url" in fields:
        return b'{"url":%b%b}' % (msgspec.json.encode(decision.question.target.url), members)
    return b"{%b}" % members[1:]


@lru_cache(1024)
def _edge(fact: EdgeFact) -> bytes:
    return edge_out(fact).model_dump_json().encode()
