"""Answers about the pages of a site that one rule decides about, which say the same if they say nothing of the page."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from app.decisions.evaluate import Decision, Labels, Question
from robots_core.origin import Origin, Target
from robots_core.robots.agents import Agent
from robots_core.robots.robots_txt import ROBOTS_PATH, RobotsTxt
from robots_core.robots.verdict import Permission

ANSWERS, LONGEST_SHARED = 16, 400
"""Answers that are kept with a file, and the bytes of the longest: with all parsed files, 20 MB at most."""


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

    def of(self, question: Question, form: str) -> "AgentAnswers | None":
        """The answers of one form to questions that differ in their paths alone; None if purposes take part."""
        if question.policy is not None:
            return None
        robots, agent, dialect = self._robots, question.agent, question.dialect
        rules = None if robots is None else robots.reading(dialect).rules_of(agent)
        key = agent, dialect.name, form
        first = None if rules is None else rules.ruleset.first
        return AgentAnswers(question.target.origin, self, key, self._by_rule.get(key, {}), first)

    def keep(self, key: _Key, by_rule: dict[int, Shared]) -> bool:
        """Whether one more answer may be kept among `by_rule`, the answers with this key.

        If there is no room, all others make room for a new key. Those of a known one stay, or questions about more
        pages than there is room for would replace them in turn.
        """
        if sum(map(len, self._by_rule.values())) >= ANSWERS:
            if by_rule:
                return False
            for others in self._by_rule.values():
                others.clear()
            self._by_rule.clear()
        self._by_rule[key] = by_rule
        return True


class AgentAnswers:
    """The answers of the file of an `origin` to one crawler, in one form; and how many `times` Sharing gave one.

    It refers to the crawler's rules, of which the file bounds those that it keeps: use it until another task runs.
    """

    __slots__ = ("_answers", "_by_rule", "_first", "_key", "origin", "times")

    def __init__(
        self,
        origin: Origin,
        answers: SharedAnswers,
        key: _Key,
        by_rule: dict[int, Shared],
        first: Callable[[str], int] | None,
    ) -> None:
        """`first`: see Ruleset.first(); None if there are no rules."""
        self.origin = origin
        self.times = 0
        self._answers = answers
        self._key = key
        self._by_rule = by_rule
        self._first = first

    def find(self, path: str) -> Shared | None:
        """The answer about this path, if it was made for one that the same rule decides about."""
        if path == ROBOTS_PATH:  # a special case
            return None
        return self._by_rule.get(0 if self._first is None else self._first(path))

    def add(self, decision: Decision, answer: bytes) -> None:
        """Keep an answer for others, unless more than the file and the rule took part in the decision."""
        path = decision.question.target.path
        if (
            len(answer) > LONGEST_SHARED
            or path == ROBOTS_PATH
            or decision.verdict.permission is Permission.DEFER
            or decision.revision is None
            or decision.overrides is not None
            or decision.valid_until is not None  # it depends on the time of day
            or not self._answers.keep(self._key, self._by_rule)
        ):
            return
        # As plain strings, which keep their hash: that of an enumeration's member is computed in Python each time.
        verdict, reason, source, dialect = map(str, decision.labels)
        rule = 0 if self._first is None else self._first(path)
        self._by_rule[rule] = Shared(answer, (verdict, reason, source, dialect))


class Sharing:
    """Shares answers among the items of a batch: those of one `form`, which depend on file, crawler and rule alone.

    An item that names a URL and an agent, and nothing else, needs no question of its own if the file for another one
    with the same origin and agent was found in memory, until another task runs. `results` and `counts` are the answers
    by the number of the item, and how many there are by their labels.
    """

    def __init__(self, form: str, results: list[bytes]) -> None:
        self.form = form
        self.results = results
        self.counts: Counter[Labels] = Counter()
        self._sites: dict[tuple[str, str], AgentAnswers] = {}
        self._unknown: dict[int, tuple[str, str]] = {}

    def is_answered(self, number: int, target: Target, agent: str) -> bool:
        """Whether the answer to an item is known. If so, it is now among the results, and counted."""
        origin, path = target
        named = origin.key, agent
        answers = self._sites.get(named)
        if answers is None:
            self._unknown[number] = named
            return False
        shared = answers.find(path)
        if shared is None:
            return False
        answers.times += 1
        self.counts[shared.labels] += 1
        self.results[number] = shared.answer
        return True

    def learn(self, number: int, answers: AgentAnswers) -> None:
        """Answer further items with the origin and agent of the one with this number by `answers`."""
        named = self._unknown.pop(number, None)
        if named is not None:
            self._sites[named] = answers

    def forget(self) -> Iterator[tuple[Origin, int]]:
        """Forget what was learnt; yield the origins of items that needed no question, and their numbers."""
        for answers in self._sites.values():
            if answers.times:
                yield answers.origin, answers.times
        self._sites.clear()
        self._unknown.clear()
