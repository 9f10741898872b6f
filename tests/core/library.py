"""Answers to questions by the library alone, as rows of an Arrow answer."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import robots_core
from robots_core.origin import read_target
from tests.core.questions import Asked, host

AT = datetime.fromisoformat("2026-11-24T09:30:00+00:00")
Row = tuple[str | None, str | None, str | None, int | None, float | None]


def answers(
    files: Sequence[bytes | str], asked: Iterable[Asked], dialect: str | None = None, purpose: Sequence[str] = ()
) -> list[Row]:
    """Verdict, reason, rule, line and interval of each question."""
    read = [robots_core.outcome(it) if isinstance(it, str) else robots_core.read(it) for it in files]
    by_origin = {f"https://{host(number)}": file for number, file in enumerate(read)}
    found: list[Row] = []
    for question in asked:
        try:
            target = read_target(question.url)
        except robots_core.BadUrl:
            found.append((None, "bad_url", None, None, None))
            continue
        try:
            agent = robots_core.agent(question.agent)
        except robots_core.BadAgent:
            found.append((None, "bad_agent", None, None, None))
            continue
        file = by_origin.get(target.origin.key)
        if file is None:
            found.append(("defer", "unknown_origin", None, None, None))
            continue
        it = file.decide(question.url, agent, dialect=dialect, purpose=purpose, at=AT)
        interval = None if it.rate is None else it.rate.interval
        found.append((it.verdict.value, it.reason.value, it.rule, it.line, interval))
    return found
