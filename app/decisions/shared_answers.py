"""Answers about the pages of a site that one rule decides about, which say the same if they say nothing of the page."""

from typing import NamedTuple, Protocol, TypeAlias

from app.decisions.evaluate import Decision, Labels, Question
from robots_core.robots.agents import Agent
from robots_core.robots.robots_txt import ROBOTS_PATH, RobotsTxt
from robots_core.robots.verdict import Permission

ANSWERS, LONGEST_SHARED = 16, 400
"""Answers that are kept with a file, and the bytes of the longest: with all parsed files, 20 MB at most."""


class Sharing(Protocol):
    """Answers of one `form` that depend on nothing but a file, a crawler and the rule of the file that decides."""

    form: str

    def made(self, number: int) -> bytes:
        """The answer that was made of the decision on this question."""
        ...

    def take(self, number: int, answer: bytes) -> None:
        """Take an answer for this question that was made for another one."""
        ...


class Shared(NamedTuple):
    """An answer, and what its decision is counted under."""

    answer: bytes
    labels: Labels


_Key: TypeAlias = tuple[Agent, str, str]


class SharedAnswers:
    """The answers of one parsed file that questions about several of its pages share."""

    __slots__ = ("_by_rule", "_robots")

    def __init__(self, robots: RobotsTxt | None) -> None:
        self._robots = robots
        self._by_rule: dict[_Key, dict[int, Shared]] = {}

    def find(self, question: Question, form: str) -> Shared | None:
        """The answer to this question, if it was made for another one."""
        by_rule = self._by_rule.get((question.agent, question.dialect.name, form))
        if by_rule is None or not _depends_on_rule(question):
            return None
        return by_rule.get(self._rule(question))

    def add(self, decision: Decision, form: str, answer: bytes) -> None:
        """Keep an answer for others, unless more than the file and the rule took part in the decision."""
        question = decision.question
        if (
            len(answer) > LONGEST_SHARED
            or not _depends_on_rule(question)
            or decision.verdict.permission is Permission.DEFER
            or decision.revision is None
            or decision.overrides is not None
            or decision.valid_until is not None  # it depends on the time of day
        ):
            return
        if sum(map(len, self._by_rule.values())) >= ANSWERS:
            self._by_rule.clear()
        # As plain strings, which keep their hash: that of an enumeration's member is computed in Python each time.
        verdict, reason, source, dialect = map(str, decision.labels)
        by_rule = self._by_rule.setdefault((question.agent, question.dialect.name, form), {})
        by_rule[self._rule(question)] = Shared(answer, (verdict, reason, source, dialect))

    def _rule(self, question: Question) -> int:
        """The number of the rule that decides."""
        robots = self._robots
        # The file is asked for its rules each time, since it bounds those that it keeps.
        rules = None if robots is None else robots.reading(question.dialect).rules_of(question.agent)
        return 0 if rules is None else rules.ruleset.first(question.target.path)


def _depends_on_rule(question: Question) -> bool:
    """Whether neither purposes nor the special case of /robots.txt take part in the decision."""
    return question.policy is None and question.target.path != ROBOTS_PATH
