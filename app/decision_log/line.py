"""A line of the decision log."""

from hashlib import sha256
from typing import Literal

import msgspec

from app.cache.byte_lru import BoundedDict
from app.decisions.evaluate import Decision
from app.observability.logs import timestamp
from robots_core.content import digest
from robots_core.robots.lines import readable
from robots_core.robots.verdict import Verdict

UrlForm = Literal["whole", "hashed", "none"]
"""How a line names the page: its URL, the first 32 hexadecimal digits of the URL's SHA-256, or not at all."""

DIGEST_DIGITS = 32
"""Hexadecimal digits of a version's digest in a line: 128 bits, too many to make two files that have them in common."""

PATTERN_LENGTH = 200
"""Characters of a rule's pattern in a line."""


def rule_named(verdict: Verdict) -> dict[str, object]:
    """The members of a line that name the rule."""
    if verdict.rule is None:
        return {"line": None, "rule": None}
    number, name, value = verdict.rule.directive
    return {"line": number, "rule": f"{name}: {readable(value)[:PATTERN_LENGTH]}"}


class LineWriter:
    """Writes decisions as lines of JSON."""

    def __init__(self, url_form: UrlForm, *, forbidden: bool = False) -> None:
        """`forbidden`: whether a 401 or 403 of robots.txt closes a site."""
        self._url_form = url_form
        self._digests: BoundedDict[int, str] = BoundedDict()
        self._forbidden = forbidden

    def write(self, decision: Decision, request_id: str | None, key: str | None) -> bytes:
        """The line, with the ids of the request and of the caller's API key; without a line break."""
        question, verdict = decision.question, decision.verdict
        deciding = None if decision.overrides is None else decision.overrides.deciding
        line: dict[str, object] = {
            "time": timestamp(decision.now),
            "request_id": request_id,
            "key": key,
            **self._page(question.target.url),
            "origin": question.target.origin.key,
            "agent": question.agent.token,
            "dialect": question.dialect.name,
            "verdict": verdict.permission,
            "reason": verdict.reason,
            **rule_named(verdict),
            "version": decision.version,
            "digest": self._digest(decision),
            "source": decision.cached.source,
            "override": None if deciding is None else deciding.id,
        }
        line |= self._basis(decision)
        if question.nonce is not None and decision.allowed:
            line["nonce"] = question.nonce
        return msgspec.json.encode(line)

    def _digest(self, decision: Decision) -> str | None:
        snapshot = decision.cached.snapshot
        if decision.version is None or snapshot is None:
            return None
        # By the parsed file, since to make the digest of a long one takes half a millisecond.
        found = self._digests.get(decision.revision) if decision.revision else None
        if found is None:
            found = digest(snapshot.access).hex()[:DIGEST_DIGITS]
            if decision.revision:
                self._digests[decision.revision] = found
        return found

    def _basis(self, decision: Decision) -> dict[str, object]:
        """What else the verdict rests on, to decide it again from the line and the file; usually nothing."""
        question = decision.question
        agent, policy = question.agent, question.policy
        own = (agent.token.lower(),)
        basis: dict[str, object] = {}
        if agent.profile is not None:
            basis["profile"] = agent.profile
        if (agent.chain, agent.names, agent.star) != (own, own, True):
            basis["reads_as"] = {"chain": agent.chain, "names": agent.names, "star": agent.star}
        if policy is not None and policy.enforce:
            basis["enforced"] = policy.purposes
        if self._forbidden:
            basis["on_forbidden"] = "deny"
        if decision.overrides is not None and decision.overrides.deciding is not None:
            basis["action"] = decision.overrides.deciding.action
        return basis

    def _page(self, url: str) -> dict[str, str]:
        match self._url_form:
            case "whole":
                return {"url": url}
            case "hashed":
                return {"url_sha256": sha256(url.encode()).hexdigest()[:32]}
            case "none":
                return {}
