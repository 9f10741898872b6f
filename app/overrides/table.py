"""What operators have decided: overrides, and which of them hold for an origin and a crawler; pure.

Several may hold at once. Of those that allow, deny or bring their own robots.txt, one decides: an origin goes before a
suffix and a longer suffix before a shorter one; in one scope, an override that names the crawler goes before one for
all; after that deny goes before robots, robots before allow, and the id decides last. Those that delay do not compete:
the longest delay holds, whatever its scope. All instants are Unix seconds, all delays seconds.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias, assert_never

from app.origin import BadUrl, Origin, Target, read_target
from app.robots.access import BODY_LIMIT, Successful
from app.robots.agents import STAR, Agent, BadAgent, read_agent

REASON_LIMIT = 500
"""Characters of the longest reason."""

AGENTS_LIMIT = 32
"""Crawlers that one override may name."""

LONGEST_DELAY = 86_400.0

END_OF_TIME = 253_402_300_799.0
"""The last second of the year 9999: a later one has no date to show."""

_SCOPE_LIMIT = 400
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = "audit"  # its place among the routes is taken


class BadOverride(ValueError):
    """An override that cannot be: `field` says which of its members is at fault, `value` is what that holds."""

    def __init__(self, field: str, value: object, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.value = value


@dataclass(frozen=True, slots=True)
class Allow:
    """Every page is open."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Every page is closed."""


@dataclass(frozen=True, slots=True)
class Replace:
    """This file is read in place of the origin's; `access` is the same object for as long as the override is."""

    access: Successful


@dataclass(frozen=True, slots=True)
class Delay:
    """No document sooner than so many seconds after the one before; it slows down, and never hurries."""

    seconds: float


Action: TypeAlias = Allow | Deny | Replace | Delay

ACTIONS: Final = ("allow", "deny", "robots", "delay")


@dataclass(frozen=True, slots=True)
class Override:
    """One decision of an operator: what holds in `scope`, for these `agents` (lower-case tokens; none: all), and why.

    A scope is an origin, or a host suffix that speaks for itself and for all names below it. From `expires_at` on it
    does nothing. `shadow`: it is worked out and counted, and changes no answer.
    """

    id: str
    scope: Origin | str
    agents: tuple[str, ...]
    action: Action
    reason: str
    expires_at: float | None
    shadow: bool

    @property
    def scope_text(self) -> str:
        """The scope as it is written: `https://www.example.com` or `example.com`."""
        return self.scope.key if isinstance(self.scope, Origin) else self.scope

    @property
    def action_name(self) -> str:
        """One of ACTIONS."""
        match self.action:
            case Allow():
                return "allow"
            case Deny():
                return "deny"
            case Replace():
                return "robots"
            case Delay():
                return "delay"
            case _:
                assert_never(self.action)

    @property
    def size(self) -> int:
        """Bytes of its robots.txt; 0 for other actions."""
        return len(self.action.access.body) if isinstance(self.action, Replace) else 0

    def expired(self, now: float) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now

    def holds_for(self, agent: Agent) -> bool:
        """Whether it binds the crawler: by its own token, or by one whose groups it falls back to, as a group does."""
        return not self.agents or any(token in self.agents for token in agent.chain)


@dataclass(frozen=True, slots=True)
class Matching:
    """What holds for an origin and a crawler: what decides, the longest delay, and both with the shadows let in.

    `deciding` is never a delay, and `delaying` always one.
    """

    deciding: Override | None
    delaying: Override | None
    shadow_deciding: Override | None
    shadow_delaying: Override | None


class Table:
    """All overrides, indexed by their scopes: a look-up costs one probe per label of the host."""

    def __init__(self, overrides: Iterable[Override] = ()) -> None:
        self.by_id: Mapping[str, Override] = {override.id: override for override in overrides}
        scopes: dict[Origin | str, list[Override]] = {}
        for override in self.by_id.values():
            scopes.setdefault(override.scope, []).append(override)
        # In order of precedence, so that the first that holds is the one that decides.
        self._scopes = {scope: sorted(those, key=_precedence) for scope, those in scopes.items()}

    def changed(self, changes: Mapping[str, Override | None]) -> "Table":
        """A table with these overrides in place of those of their ids, None for none."""
        table = Table()
        by_id, scopes = dict(self.by_id), dict(self._scopes)
        for id_, override in changes.items():
            before = by_id.pop(id_, None)
            if before is not None:
                left = [one for one in scopes.pop(before.scope) if one.id != id_]
                scopes.update({before.scope: left} if left else {})
            if override is not None:
                by_id[id_] = override
                scopes[override.scope] = sorted([*scopes.get(override.scope, ()), override], key=_precedence)
        table.by_id, table._scopes = by_id, scopes
        return table

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
        """What holds there for the crawler now; None, in most cases, for nothing."""
        holding = [one for one in self.at(origin) if not one.expired(now) and one.holds_for(agent)]
        if not holding:
            return None
        in_force = [one for one in holding if not one.shadow]
        deciding, delaying = _outcome(in_force)
        shadow_deciding, shadow_delaying = _outcome(holding)
        return Matching(deciding, delaying, shadow_deciding, shadow_delaying)


@dataclass(frozen=True, slots=True)
class Nothing:
    """No overrides: for a service without operators."""

    table: Table = field(default_factory=Table)


def _outcome(holding: Sequence[Override]) -> tuple[Override | None, Override | None]:
    """What decides, and the longest delay, among overrides in order of precedence."""
    deciding = next((one for one in holding if not isinstance(one.action, Delay)), None)
    delaying, longest = None, 0.0
    for one in holding:
        if isinstance(one.action, Delay) and one.action.seconds > longest:
            delaying, longest = one, one.action.seconds
    return deciding, delaying


_RANKS = {"deny": 0, "robots": 1, "allow": 2, "delay": 3}


def _precedence(override: Override) -> tuple[bool, int, str]:
    return not override.agents, _RANKS[override.action_name], override.id


def read_override(id_: str, members: Mapping[str, object]) -> Override:
    """Read an override from its members as JSON has them, `expires_at` as Unix seconds; BadOverride names the member.

    `scope` and `reason` are texts, `agents` is a list of texts, `action` is one of ACTIONS, `robots` (a text) goes with
    `robots` and `delay` (seconds) with `delay`, `shadow` is true or false.
    """
    if not _ID.fullmatch(id_) or id_ == _RESERVED:
        detail = f"{id_[:80]!r} is not an override id: 1 to 64 letters, digits, '.', '_' and '-', and not 'audit'"
        raise BadOverride("id", id_, detail)
    return Override(
        id_,
        scope=_read_scope(members.get("scope")),
        agents=_read_agents(members.get("agents")),
        action=_read_action(members),
        reason=_read_reason(members.get("reason")),
        expires_at=_read_expiry(members.get("expires_at")),
        shadow=_read_shadow(members.get("shadow", False)),
    )


def write_override(override: Override) -> dict[str, object]:
    """The members that `read_override` reads."""
    action = override.action
    return {
        "scope": override.scope_text,
        "agents": list(override.agents),
        "action": override.action_name,
        "robots": action.access.body.decode() if isinstance(action, Replace) else None,
        "delay": action.seconds if isinstance(action, Delay) else None,
        "reason": override.reason,
        "expires_at": override.expires_at,
        "shadow": override.shadow,
    }


def _read_scope(value: object) -> Origin | str:
    if not isinstance(value, str) or not value or len(value) > _SCOPE_LIMIT:
        detail = "the scope is an origin like https://www.example.com or a host suffix like example.com"
        raise BadOverride("scope", value, detail)
    whole = "://" in value
    host = value if whole else value.removeprefix(".")
    try:
        target = read_target(value if whole else f"http://{host}")
    except BadUrl as error:
        raise BadOverride("scope", value, f"the scope {value!r} cannot be read: {error}") from None
    if target.path != "/" or "@" in value or "?" in value or "#" in value:
        detail = f"the scope {value!r} has more than an origin or a host: it has no user, no path and no query"
        raise BadOverride("scope", value, detail)
    if whole:
        return target.origin
    # What a URL may have after its host: a port, or a slash.
    if target != Target(Origin("http", target.origin.host, 80), "/") or _has_more(host):
        raise BadOverride("scope", value, f"the scope {value!r} is not a host suffix: it has no port and no path")
    return target.origin.host


def _has_more(host: str) -> bool:
    return "/" in host or ":" in host.rpartition("]")[2]


def _read_agents(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > AGENTS_LIMIT:
        raise BadOverride("agents", value, f"agents is a list of at most {AGENTS_LIMIT} product tokens")
    return tuple(dict.fromkeys(map(_read_token, value)))


def _read_token(value: object) -> str:
    try:
        token = read_agent(value).token if isinstance(value, str) else STAR
    except BadAgent as error:
        raise BadOverride("agents", value, str(error)) from None
    if token == STAR:
        raise BadOverride("agents", value, f"{value!r:.100} is not a product token; for all crawlers, leave agents out")
    return token.lower()


def _read_action(members: Mapping[str, object]) -> Action:
    name, robots, delay = (members.get(field) for field in ("action", "robots", "delay"))
    for member, given in (("robots", robots), ("delay", delay)):
        if given is not None and name != member:
            raise BadOverride(
                member, given, f"{member} goes with the action {member!r} only, and the action is {name!r}"
            )
    match name:
        case "allow":
            return Allow()
        case "deny":
            return Deny()
        case "robots":
            return Replace(Successful(200, _read_text(robots), content_type="text/plain"))
        case "delay":
            return Delay(_read_delay(delay))
        case _:
            raise BadOverride("action", name, f"{name!r:.100} is not an action; choose one of {', '.join(ACTIONS)}")


def _read_text(value: object) -> bytes:
    if not isinstance(value, str):
        raise BadOverride("robots", value, "the action 'robots' takes the text of a robots.txt in robots")
    try:
        body = value.encode()
    except UnicodeEncodeError:
        raise BadOverride("robots", None, "robots holds a lone surrogate, which no file can hold") from None
    if len(body) > BODY_LIMIT:
        raise BadOverride("robots", None, f"robots has {len(body)} bytes; at most {BODY_LIMIT} are read")
    return body


def _read_delay(value: object) -> float:
    seconds = _number(value)
    if seconds is None or not 0 < seconds <= LONGEST_DELAY:
        detail = f"the action 'delay' takes seconds in delay, more than 0 and at most {LONGEST_DELAY:.0f}"
        raise BadOverride("delay", value, detail)
    return seconds


def _read_reason(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > REASON_LIMIT:
        raise BadOverride("reason", value, f"an override has a reason, of at most {REASON_LIMIT} characters")
    if not all(letter.isprintable() for letter in value):
        raise BadOverride("reason", value, "the reason holds a character that cannot be shown; it is one line of text")
    return value


def _read_expiry(value: object) -> float | None:
    if value is None:
        return None
    at = _number(value)
    if at is None or not 0 <= at <= END_OF_TIME:
        raise BadOverride("expires_at", value, "expires_at is an instant between the years 1970 and 9999")
    return at


def _read_shadow(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadOverride("shadow", value, "shadow is true or false")
    return value


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared before it is converted: an integer of JSON has no bound, and a float has one.
    return float(value) if -END_OF_TIME <= value <= END_OF_TIME and not math.isnan(value) else None
