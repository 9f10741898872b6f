"""Judge purposes by the statements of a robots.txt that bind an agent and a URL (spec I10)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeVar

from robots_core.purposes.policy import PURPOSES, Purpose, PurposePolicy
from robots_core.robots.lines import Key
from robots_core.robots.usage import Preference, Usage
from robots_core.robots.verdict import Permission, Reason, Verdict


class PurposeState(StrEnum):
    """Whether the site permits a purpose; UNSTATED where it says nothing about it."""

    YES = "yes"
    NO = "no"
    UNSTATED = "unstated"


class PurposeJudgement(NamedTuple):
    """The state of a purpose, and the directive (a key in lower case) and line that decided; None where none did."""

    state: PurposeState
    directive: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """The judgement of each purpose of a policy. Two are equal only if they are the same object.

    `refused`: one of the purposes is not permitted. `states` are the purposes and their states as plain text.
    """

    by_purpose: Mapping[Purpose, PurposeJudgement]
    refused: bool
    states: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, by_purpose: Mapping[Purpose, PurposeJudgement]) -> "Judgements":
        """The judgements, with what follows from them."""
        states = tuple((purpose, judgement.state.value) for purpose, judgement in by_purpose.items())
        return cls(by_purpose, any(state == PurposeState.NO.value for _, state in states), states)


_UNSTATED: Final = PurposeJudgement(PurposeState.UNSTATED)

# What the words of Content-Signal (spec I2), Content-Usage (I1e) and the lines about AI training (I5) state.
SIGNALS: Final = {"yes": PurposeState.YES, "no": PurposeState.NO}
PREFERENCES: Final = {"y": PurposeState.YES, "n": PurposeState.NO}
_TRAINING: Final = {Key.ALLOW_AI_TRAINING: PurposeState.YES, Key.DISALLOW_AI_TRAINING: PurposeState.NO}


class _Statement(Protocol):
    @property
    def state(self) -> PurposeState: ...


S = TypeVar("S", bound=_Statement)


class _Stated(NamedTuple):
    """What binds an agent and a URL, as far as it is about purposes."""

    signals: tuple[Preference | None, ...] = ()
    search: Preference | None = None
    train_ai: Preference | None = None
    training: Key | None = None
    training_line: int = 0


_NOTHING: Final = _Stated()


def judge_for(policy: PurposePolicy, verdict: Verdict, usage: Usage | None) -> tuple[Verdict, Judgements]:
    """The purposes of a policy, judged, and the verdict: a disallow where the policy enforces one that is refused.

    What may not be fetched may be used for nothing. Of several statements a no wins, then a yes, and of those that say
    the same the first line is named. Where the verdict is defer, nothing is known yet, so nothing is stated.
    """
    if verdict.permission is Permission.DISALLOW:
        line, key, _ = (None, None, None) if verdict.rule is None else verdict.rule.directive
        return verdict, _closed(policy.purposes, None if key is None else str(key), line)
    stated = _NOTHING if usage is None or verdict.permission is Permission.DEFER else _read(usage)
    judgements = _judge(policy.purposes, stated)
    if policy.enforce and judgements.refused:
        verdict = Verdict(Permission.DISALLOW, Reason.USAGE, None, verdict.selection)
    return verdict, judgements


def _read(usage: Usage) -> _Stated:
    signals, preferences, training = usage.content_signal, usage.content_usage, usage.ai_training
    return _Stated(
        tuple([_known_signal(signals.get(purpose)) for purpose in PURPOSES]) if signals else (),
        preferences.get("search"),
        preferences.get("train-ai"),
        None if training is None else training.key,
        0 if training is None else training.line,
    )


def _known_signal(signal: Preference | None) -> Preference | None:
    # An unknown value says nothing, and can be as long as a line: it must not be kept with the judgements.
    return signal if signal is not None and signal.value in SIGNALS else None


@lru_cache(1024)
def _closed(purposes: tuple[Purpose, ...], directive: str | None, line: int | None) -> Judgements:
    return Judgements.of(dict.fromkeys(purposes, PurposeJudgement(PurposeState.NO, directive, line)))


# Most files say the same few things in the same few lines.
@lru_cache(1024)
def _judge(purposes: tuple[Purpose, ...], stated: _Stated) -> Judgements:
    return Judgements.of({purpose: _decide(_statements(purpose, stated)) for purpose in purposes})


def strongest(statements: Sequence[S]) -> S | None:
    """The first statement that says no, else the first that says yes; None if there is neither."""
    for state in (PurposeState.NO, PurposeState.YES):
        for statement in statements:
            if statement.state is state:
                return statement
    return None


def _decide(statements: Iterable[PurposeJudgement]) -> PurposeJudgement:
    return strongest(sorted(statements, key=lambda statement: statement.line or 0)) or _UNSTATED


def _statements(purpose: Purpose, stated: _Stated) -> Iterator[PurposeJudgement]:
    signal = stated.signals[PURPOSES.index(purpose)] if stated.signals else None
    if signal is not None:
        yield PurposeJudgement(SIGNALS[signal.value], str(Key.CONTENT_SIGNAL), signal.line)
    # Content-Usage has no category for ai-input.
    preference = {"search": stated.search, "ai-train": stated.train_ai}.get(purpose)
    if preference is not None:
        yield PurposeJudgement(PREFERENCES[preference.value], str(Key.CONTENT_USAGE), preference.line)
    if purpose == "ai-train" and stated.training is not None:
        yield PurposeJudgement(_TRAINING[stated.training], str(stated.training), stated.training_line)
