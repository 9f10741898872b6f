"""The operators' overrides, and which of them hold for an origin and a crawler; pure.

Several may hold at once. Of those that allow, deny or replace the robots.txt, one decides. An origin precedes a suffix,
and a longer suffix a shorter one; in the same scope, an override that names the crawler precedes one for all; then deny
precedes robots, robots precedes allow, and at last the id decides. Delays and budgets do not compete: the longest
delay and the smallest budget hold, whatever their scope. All instants are Unix seconds, all delays seconds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Literal, TypeAlias

from robots_core.origin import Origin
from robots_core.robots.access import Successful
from robots_core.robots.agents import Agent

ActionName: TypeAlias = Literal["allow", "deny", "robots", "delay", "budget"]
"""The name of an action, as JSON and metrics have it."""

OverrideSource: TypeAlias = Literal["api", "file"]
"""Where an override comes from: a PUT, or OVERRIDES_FILE."""


@dataclass(frozen=True, slots=True)
class Override:
    """What an operator has decided for a scope and for `agents` (lower-case tokens; none: all), and the reason.

    A scope is an origin, or a host suffix, which stands for itself and all names below it. The override has no effect
    from `expires_at` on. A `shadow` is only evaluated and counted, and changes no answer.

    Three actions have a value. `robots` is read in place of the origin's file, and is the same object as long as the
    override is unchanged. At least `delay` seconds are left between documents; a slower rate of the file stays in
    force. Permits are given for `budget` documents a day at most; a smaller one of the domain table stays in force.
    """

    id: str
    scope: Origin | str
    agents: tuple[str, ...]
    action: ActionName
    reason: str
    expires_at: float | None
    shadow: bool
    source: OverrideSource = "api"
    robots: Successful | None = None
    delay: float | None = None
    budget: int | None = None

    @property
    def scope_text(self) -> str:
        """The scope as text: `https://www.example.com` or `example.com`."""
        return self.scope.key if isinstance(self.scope, Origin) else self.scope

    @property
    def size(self) -> int:
        """Bytes of its robots.txt; 0 for other actions."""
        return 0 if self.robots is None else len(self.robots.body)

    def expired(self, now: float) -> bool:
        """Whether it has expired."""
        return self.expires_at is not None and self.expires_at <= now

    def holds_for(self, agent: Agent) -> bool:
        """Whether it applies to the crawler, by its own token or one that it falls back to, as with groups."""
        return not self.agents or any(token in self.agents for token in agent.chain)


@dataclass(frozen=True, slots=True)
class Matching:
    """The overrides that hold for an origin and a crawler: the one that decides, the longest delay, the least budget.

    `deciding` is neither a delay nor a budget, `delaying` is a delay, and `limiting` a budget. `shadow_deciding` and
    `shadow_delaying` are what they would be if shadows were in force.
    """

    deciding: Override | None
    delaying: Override | None
    shadow_deciding: Override | None
    shadow_delaying: Override | None
    limiting: Override | None = None

    @property
    def budget(self) -> int | None:
        """The documents a day of `limiting`."""
        return None if self.limiting is None else self.limiting.budget


class Table:
    """All overrides, indexed by scope: a lookup costs one probe for each label of the host."""

    def __init__(self, overrides: Iterable[Override] = ()) -> None:
        self.by_id: Mapping[str, Override] = {override.id: override for override in overrides}
        scopes: dict[Origin | str, list[Override]] = {}
        for override in self.by_id.values():
            scopes.setdefault(override.scope, []).append(override)
        # In order of precedence, so that the first that holds is the one that decides.
        self._scopes = {scope: sorted(those, key=_precedence) for scope, those in scopes.items()}

    def __bool__(self) -> bool:
        return bool(self.by_id)

    @cached_property
    def ordered(self) -> Sequence[Override]:
        """All of them by id."""
        return sorted(self.by_id.values(), key=lambda override: override.id)

    def at(self, origin: Origin) -> Iterator[Override]:
        """All overrides whose scope contains the origin, expired ones included, in order of precedence."""
        yield from self._scopes.get(origin, ())
        suffix = origin.host
        while suffix:
            yield from self._scopes.get(suffix, ())
            suffix = suffix.partition(".")[2]

    def find(self, origin: Origin, agent: Agent, now: float) -> Matching | None:
        """The overrides that hold there for the crawler now; None, in most cases, if there are none."""
        holding = [one for one in self.at(origin) if not one.expired(now) and one.holds_for(agent)]
        if not holding:
            return None
        in_force = [one for one in holding if not one.shadow]
        deciding, delaying = _outcome(in_force)
        shadow_deciding, shadow_delaying = _outcome(holding)
        budgets = [(one.budget, one) for one in in_force if one.budget is not None]
        limiting = min(budgets, key=itemgetter(0))[1] if budgets else None
        return Matching(deciding, delaying, shadow_deciding, shadow_delaying, limiting)


def _outcome(holding: Sequence[Override]) -> tuple[Override | None, Override | None]:
    """The override that decides and the longest delay, of overrides in order of precedence."""
    deciding = next((one for one in holding if one.action not in ("delay", "budget")), None)
    delaying, longest = None, 0.0
    for one in holding:
        if one.delay is not None and one.delay > longest:
            delaying, longest = one, one.delay
    return deciding, delaying


_RANKS = {"deny": 0, "robots": 1, "allow": 2, "delay": 3, "budget": 4}


def _precedence(override: Override) -> tuple[bool, int, str]:
    return not override.agents, _RANKS[override.action], override.id
