"""A line of the decision log."""

from hashlib import sha256
from typing import Literal

import msgspec

from app.evaluate import Decision
from app.observability.logs import timestamp
from robots_core.robots.lines import readable

UrlForm = Literal["whole", "hashed", "none"]
"""How a line names the page: its URL, the first 32 hexadecimal digits of the URL's SHA-256, or not at all."""

PATTERN_LENGTH = 200
"""Characters of a rule's pattern in a line."""


class LineWriter:
    """Writes decisions as lines of JSON."""

    def __init__(self, url_form: UrlForm) -> None:
        self._url_form = url_form

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
            "line": None,
            "rule": None,
            "version": decision.version,
            "source": decision.cached.source,
            "override": None if deciding is None else deciding.id,
        }
        if verdict.rule is not None:
            number, name, value = verdict.rule.directive
            line |= {"line": number, "rule": f"{name}: {readable(value)[:PATTERN_LENGTH]}"}
        return msgspec.json.encode(line)

    def _page(self, url: str) -> dict[str, str]:
        match self._url_form:
            case "whole":
                return {"url": url}
            case "hashed":
                return {"url_sha256": sha256(url.encode()).hexdigest()[:32]}
            case "none":
                return {}
