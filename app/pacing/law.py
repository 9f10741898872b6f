"""The law of a queue: which slot a request gets, or when its turn is. Pure; `reserve.lua` does the same in the store.

Instants and durations are whole microseconds. Docs: docs/explanation/pacing.md.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

SECOND = 1_000_000

AHEAD_FOR, AHEAD_SLOTS, FAR_SLOTS = 2 * SECOND, 8, 256
"""The horizon: so long, or so many intervals ahead, slots are given. It is FAR_SLOTS for one key alone, before pages
are reported: then the pace may change, and slots that were given do not move."""

NEAR_SLOTS = 2
"""Intervals: a slot this near is open to all, or it would be lost."""

TURN_GRACE = 10 * SECOND
"""A caller or a key is active until so long after it was expected back, and longer at a slow pace."""

MAX_SLOTS = 2 * FAR_SLOTS
MAX_ACTIVE, MAX_OWN = 1000, 64
"""Slots of a queue; keys that are counted, callers and turns of each, and turns of one caller, at most."""

LONGEST_COST = 2_592_000 * SECOND
LONGEST_RETRY = 86_400 * SECOND
ATTEMPTS, ROUNDS = 20, 8


class Booked(NamedTuple):
    """The pool is `caller`'s from `begin` to `end`."""

    begin: int
    end: int
    caller: str
    name: str


class Queue(NamedTuple):
    """One queue. `slots` are those that are not over, by time; `tail` is the end of the last, should they be lost.

    `keys` are active until these instants, and so are `callers`, by key. `turns`, by key, are when those that wait are
    to be back; a caller has as many as it has workers that wait. `shortest` is the shortest max_wait of those that were
    refused recently, which holds up to `shortest_until`.
    """

    tail: int = 0
    slots: tuple[Booked, ...] = ()
    keys: Mapping[str, int] = {}
    callers: Mapping[str, Mapping[str, int]] = {}
    turns: Mapping[str, Mapping[str, int]] = {}
    shortest: int = 0
    shortest_until: int = 0


class RateWindow(NamedTuple):
    """One document every `interval`, up to the instant `until`."""

    until: float
    interval: int


class Request(NamedTuple):
    """A request for a slot; `caller` is "<key id>/<name>", or "<name>" without keys. `name` is the slot's.

    A negative `max_wait` only asks. `learned`: pages were reported, and the pace follows them.
    """

    caller: str
    name: str
    windows: Sequence[RateWindow]
    max_wait: int
    cost: float = 1.0
    learned: bool = False


class Turn(NamedTuple):
    """Nothing was given: the first free slot is `wait` away, and the caller's turn is in `retry_after`."""

    wait: int
    retry_after: int


def advance(windows: Sequence[RateWindow], at: int, documents: float) -> int:
    """The instant from which the pace permits another document after `documents` were fetched at `at`."""
    start: float = at
    for window in windows:
        if start < window.until:
            room = (window.until - start) / window.interval
            if documents <= room:
                break
            documents, start = documents - room, window.until
    return min(math.ceil(start + documents * window.interval), at + LONGEST_COST)


def reserve(
    queue: Queue, request: Request, now: int, closed_until: int = 0, used_up_until: int = 0
) -> tuple[Booked | Turn, Queue]:
    """What the request gets, and the queue after it.

    No slot begins before `closed_until`, and none is given before `used_up_until`.
    """
    caller, max_wait = request.caller, request.max_wait
    key = caller[: caller.find("/") + 1]
    interval = next(window.interval for window in request.windows if now < window.until)
    keys, callers = _later(queue.keys, now), _later(queue.callers.get(key, {}), now)
    active_keys, active = len(keys | {key: 0}), len(callers | {caller: 0})
    grace = TURN_GRACE + 2 * interval * active_keys
    line = _later(queue.turns.get(key, {}), now - grace)
    own = _own_turns(line, caller, now, takes=max_wait >= 0)

    # The horizon: no longer than the shortest max_wait of those that were refused recently.
    shortest, shortest_until = queue.shortest, queue.shortest_until
    if shortest_until <= now:
        shortest = LONGEST_COST
    most = FAR_SLOTS if active_keys == 1 and not request.learned else AHEAD_SLOTS
    horizon = min(max(AHEAD_FOR, min(most * interval, shortest)), FAR_SLOTS * interval)
    reach = max(0, min(max_wait, horizon))

    slots, tail = _whole(queue, now)
    first = max(now, closed_until, used_up_until)
    go, end = _first_fit(slots, request, first)
    if active_keys > 1 and go - now >= interval:
        # The slots of a key are apart, so that the others find some between them as soon as they ask.
        go, end = _first_fit(slots, request, max(first, _spaced(slots, key, active_keys)))
    blocked = max(now, used_up_until)
    if len(slots) >= MAX_SLOTS:
        blocked = max(blocked, slots[0].end)
    held = [slot for slot in slots if slot.begin > now and slot.caller == caller]
    may_go = _within_share(held, max(interval, horizon // active_keys // active), end - go)

    # Who is not due gets a slot that is near, or that no one is expected for. Who is late is no longer expected.
    late = min(SECOND, max(interval // 4, SECOND // 10))
    turns = {**queue.turns, key: line}
    expected = sorted(turn for members in turns.values() for turn in members.values() if turn > now - late)
    before = sorted(turn for turn in line.values() if turn > now - late)
    near = min(NEAR_SLOTS * interval, reach // 2)
    within = min(max_wait, FAR_SLOTS * interval) if own.due else min(max_wait, reach)
    is_next = own.due or bisect_right(expected, go - near) == 0
    if go - now <= within and blocked <= now and (go - now < near or (may_go <= now and is_next)):
        given = Booked(go, end, caller, request.name)
        slots, tail, back = tuple(sorted((*slots, given))), max(tail, end), end
        result: Booked | Turn = given
    else:
        # Where no two slots are within reach, one waits with the next, or a caller that stays away costs a slot.
        joins = own.due or (active_keys == 1 and reach < interval)
        at = _Refused(max(blocked, may_go, go - reach), interval, active_keys, own, joins, before, expected)
        turn = max(_turn(at, active), now + min(interval, reach) // 4)
        turn = turn if at.is_next else _untaken(turn, at)
        retry_after = min(turn - now, LONGEST_RETRY)
        result, back = Turn(go - now, retry_after), now + retry_after
        if max_wait >= 0 and own.waiting < MAX_OWN and len(line) < MAX_ACTIVE:
            line[f"{caller}:{own.waiting}"] = turn
        if max_wait <= shortest:
            shortest, shortest_until = max_wait, back + grace
    if max_wait < 0:
        return result, queue._replace(tail=tail, slots=slots, turns=turns)
    for members, name in ((keys, key), (callers, caller)):
        if name in members or len(members) < MAX_ACTIVE:
            members[name] = max(members.get(name, 0), back + grace)
    return result, Queue(tail, slots, keys, {**queue.callers, key: callers}, turns, shortest, shortest_until)


def release(queue: Queue, name: str) -> Queue:
    """The queue without a slot that was not used."""
    slots = tuple(slot for slot in queue.slots if slot.name != name)
    if len(slots) == len(queue.slots):
        return queue
    return queue._replace(slots=slots, tail=slots[-1].end if slots else 0)


def _later(members: Mapping[str, int], instant: int) -> dict[str, int]:
    """The members whose instants are later than this one."""
    return {name: until for name, until in members.items() if until > instant}


class _Own(NamedTuple):
    """A caller's turns: how many it waits for, the latest of them, and whether one has come, which does not count."""

    waiting: int
    latest: int
    due: bool


class _Refused(NamedTuple):
    """A request that gets no slot before `opens`. `before` are the turns of its key, and `expected` those of all.

    `joins`: it comes with the next, unless another one does. Who is due keeps its place so.
    """

    opens: int
    interval: int
    active_keys: int
    own: _Own
    joins: bool
    before: Sequence[int]
    expected: Sequence[int]

    @property
    def is_next(self) -> bool:
        """Whether it is next, with one other at most."""
        return self.joins and bisect_right(self.expected, self.opens) <= 1


def _own_turns(line: dict[str, int], caller: str, now: int, *, takes: bool) -> _Own:
    """The caller's turns. The first that has come is taken out of the line, and the last one gets its number."""
    count, due = 0, None
    while count < MAX_OWN and (name := f"{caller}:{count}") in line:
        if line[name] <= now and (due is None or line[name] < line[due]):
            due = name
        count += 1
    latest = max((line[f"{caller}:{number}"] for number in range(count)), default=0)
    if due is not None and takes:
        count -= 1
        line[due] = line[f"{caller}:{count}"]
        del line[f"{caller}:{count}"]
    return _Own(count, latest, due is not None)


def _whole(queue: Queue, now: int) -> tuple[tuple[Booked, ...], int]:
    """The slots that are not over, and their end. If the last are lost, one up to the tail replaces them."""
    slots = tuple(slot for slot in queue.slots if slot.end > now)
    end = slots[-1].end if slots else 0
    if queue.tail > max(now, end):
        slots = (Booked(now, queue.tail, "", "lost"), *slots)
    return slots, max(queue.tail, end)


def _first_fit(slots: Iterable[Booked], request: Request, at: int) -> tuple[int, int]:
    """When a slot for the request can begin, from this instant on, and when it ends."""
    end = advance(request.windows, at, request.cost)
    for slot in slots:
        if end <= slot.begin:
            break
        if slot.end > at:
            at = slot.end
            end = advance(request.windows, at, request.cost)
    return at, end


def _spaced(slots: Sequence[Booked], key: str, active_keys: int) -> int:
    """When a key may have one more slot: as many times what its last one takes after that as there are keys."""
    last = next((slot for slot in reversed(slots) if slot.caller.startswith(key)), None)
    return last.begin + active_keys * (last.end - last.begin) if last else 0


def _within_share(held: Sequence[Booked], share: int, takes: int) -> int:
    """When a caller that has these slots, which have not begun, may have one more."""
    exceeds = held and sum(slot.end - slot.begin for slot in held) + takes > share
    return held[0].begin if exceeds else 0


def _turn(at: _Refused, active: int) -> int:
    """The turn behind those that come before it: the line may have gaps, where turns are farther apart.

    Who was due takes the first gap in the line of all keys.
    """
    spacing = at.interval * at.active_keys
    if at.is_next:
        return max(at.opens, at.own.latest + active * spacing if at.own.waiting else 0)
    line, apart = (at.expected, at.interval) if at.own.due else (at.before, spacing)
    place = len(line)
    for _ in range(ROUNDS):
        fewer = bisect_left(line, at.opens + place * apart)
        if fewer >= place:
            break
        place = fewer
    turn = at.opens + place * apart
    return max(turn, at.own.latest + active * spacing if at.own.waiting else 0)


def _untaken(turn: int, at: _Refused) -> int:
    """The turn, or a later one that is none of another key."""
    for _ in range(min(at.active_keys, ATTEMPTS) if at.active_keys > 1 else 0):
        if not _is_taken(turn, at):
            break
        turn += at.interval
    return turn


def _is_taken(turn: int, at: _Refused) -> bool:
    """Whether another turn is within half an interval."""
    half = at.interval // 2
    return bisect_right(at.expected, turn - half) < bisect_left(at.expected, turn + half)
