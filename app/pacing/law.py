"""The law of a queue: which slot a request gets, or when its turn is. Pure; `reserve.lua` does the same in the store.

Instants and durations are whole microseconds. Docs: docs/explanation/pacing.md.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.pacing.schedule import PaceWindow

SECOND = 1_000_000

AHEAD_FOR, AHEAD_SLOTS, FAR_SLOTS = 2 * SECOND, 8, 256
"""The horizon: so long, or so many intervals ahead, slots are given. It is FAR_SLOTS for one key alone, before pages
are reported: then the pace may change, and slots that were given do not move."""

NEAR_SLOTS = 2
"""Intervals: a slot this near is open to all, or it would be lost."""

CALL_TAKES = SECOND // 10
"""A call and its answer may take so long: whose turn was less than this ago is not late."""

TURN_GRACE, MISSED_SLOTS = 10 * SECOND, 32
"""A caller or a key is active for so long after it was expected back. A turn that was missed is remembered for so many
intervals of its key more."""

MAX_SLOTS = 2 * FAR_SLOTS
MAX_ACTIVE, MAX_OWN = 1000, 64
"""Slots of a queue; keys that are counted, callers and turns of each, and turns of one caller, at most."""

LONGEST_COST = 2_592_000 * SECOND
LONGEST_RETRY = 86_400 * SECOND


class Booked(NamedTuple):
    """The pool is `caller`'s from `begin` to `end`."""

    begin: int
    end: int
    caller: str
    name: str


class Queue(NamedTuple):
    """One queue. `slots` are those that are not over, by time; `tail` is the end of the last, should they be lost.

    `keys` are active until these instants, and so are `callers`, by key. `turns`, by key, are when those that wait are
    to be back: "<caller>:<number>", since a caller has as many as it has workers that wait. `line` are the turns of all
    keys, and `stand_in` is when a caller without one is to be back, for the next slot. `shortest` is the shortest
    max_wait of those that were refused recently, which holds up to `shortest_until`.
    """

    tail: int = 0
    slots: tuple[Booked, ...] = ()
    keys: Mapping[str, int] = {}
    callers: Mapping[str, Mapping[str, int]] = {}
    turns: Mapping[str, Mapping[str, int]] = {}
    line: Mapping[str, int] = {}
    stand_in: int = 0
    shortest: int = 0
    shortest_until: int = 0


class RateWindow(NamedTuple):
    """One document every `interval`, up to the instant `until`."""

    until: float
    interval: int


class Request(NamedTuple):
    """A request for a slot; `caller` is "<key id>/<name>", or "<name>" without keys. `name` is the slot's.

    `learned`: pages were reported, and the pace follows them.
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


def advance(windows: Sequence[RateWindow] | Sequence[PaceWindow], at: float, documents: float) -> float:
    """The instant from which the pace permits another document after `documents` were fetched at `at`."""
    for window in windows:
        if at < window.until:
            room = (window.until - at) / window.interval
            if documents <= room:
                break
            documents, at = documents - room, window.until
    return at + documents * window.interval


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
    spacing = interval * active_keys

    forgotten = now - TURN_GRACE - MISSED_SLOTS * spacing
    turns, line = _later(queue.turns.get(key, {}), forgotten), _later(queue.line, forgotten)
    waiting, latest, is_due = _own_turns(turns, line, caller, now)

    # The horizon: no longer than the shortest max_wait of those that were refused recently.
    shortest, shortest_until = queue.shortest, queue.shortest_until
    if shortest_until <= now:
        shortest = LONGEST_COST
    most = FAR_SLOTS if active_keys == 1 and not request.learned else AHEAD_SLOTS
    horizon = min(max(AHEAD_FOR, min(most * interval, shortest)), FAR_SLOTS * interval)
    reach = min(max_wait, horizon)

    # The first slot that fits. Those of a key are apart, so that the others find some between them when they ask.
    slots, tail = _whole(queue, now)
    first = max(now, closed_until, used_up_until)
    go, end = _first_fit(slots, request, first)
    last = next((slot for slot in reversed(slots) if slot.caller.startswith(key)), None)
    if active_keys > 1 and last and go - now >= max(interval, CALL_TAKES):
        go, end = _first_fit(slots, request, max(first, last.begin + active_keys * (last.end - last.begin)))
    blocked = max(now, used_up_until, slots[0].end if len(slots) >= MAX_SLOTS else 0)

    # A caller holds its share of the horizon at most.
    held = [slot for slot in slots if slot.begin > now and slot.caller == caller]
    exceeds = sum(slot.end - slot.begin for slot in held) + end - go > max(interval, horizon // active_keys // active)
    may_go = held[0].begin if held and exceeds else 0

    # Before its turn, a caller gets a slot only if it is near or nobody is expected before it; late callers are not.
    late = max(CALL_TAKES, min(interval, reach) // 4)
    expected = sorted(turn for turn in line.values() if turn > now - late)
    near = min(NEAR_SLOTS * interval, reach // 2)
    within = min(max_wait, FAR_SLOTS * interval) if is_due else reach
    is_free = is_due or bisect_right(expected, go - near) == 0
    stand_in = queue.stand_in
    if go - now <= within and blocked <= now and (go - now < near or (may_go <= now and is_free)):
        given = Booked(go, end, caller, request.name)
        slots, tail, back = tuple(sorted((*slots, given))), max(tail, end), end
        result: Booked | Turn = given
    else:
        opens = max(blocked, may_go, go - reach)
        # Where no two slots are in reach and turns were missed, one more stands in for who may not come.
        missed = len(expected) < len(line)
        is_next = bisect_right(expected, opens) <= missed
        stands_in = reach < interval and missed and is_next and stand_in < opens
        if stands_in:
            turn = stand_in = opens + reach * 3 // 4
        elif is_due:
            turn = opens if is_next else _gap(expected, opens, interval, opens)
        else:
            # Behind the others of its key, and the turns of the caller's other workers as far apart as its share.
            of_key = sorted(turn for turn in turns.values() if turn > now - late)
            start = _gap(of_key, opens, spacing, now - late)
            start = max(start, latest + active * spacing) if waiting else start
            turn = _gap(expected, start, interval, start)
            # The first turn of a key is put off for those of others by less than two rounds of the keys.
            turn = start if not of_key and turn >= start + 2 * spacing else turn
        turn = max(turn, now + min(interval, reach) // 4)
        retry_after = min(turn - now, LONGEST_RETRY)
        result, back = Turn(go - now, retry_after), now + retry_after
        if waiting < MAX_OWN and not stands_in and len(turns) < MAX_ACTIVE:
            turns[f"{caller}:{waiting}"] = line[f"{caller}:{waiting}"] = turn
        if max_wait <= shortest:
            shortest, shortest_until = max_wait, back + TURN_GRACE
    for members, name in ((keys, key), (callers, caller)):
        if name in members or len(members) < MAX_ACTIVE:
            members[name] = max(members.get(name, 0), back + TURN_GRACE)
    of_keys = {**queue.callers, key: callers}, {**queue.turns, key: turns}
    return result, Queue(tail, slots, keys, *of_keys, line, stand_in, shortest, shortest_until)


def release(queue: Queue, name: str) -> Queue:
    """The queue without a slot that was not used."""
    slots = tuple(slot for slot in queue.slots if slot.name != name)
    if len(slots) == len(queue.slots):
        return queue
    return queue._replace(slots=slots, tail=slots[-1].end if slots else 0)


def _later(members: Mapping[str, int], instant: int) -> dict[str, int]:
    """The members whose instants are later than this one."""
    return {name: until for name, until in members.items() if until > instant}


def _own_turns(turns: dict[str, int], line: dict[str, int], caller: str, now: int) -> tuple[int, int, bool]:
    """How many turns the caller waits for, the latest, and whether one has come.

    The first that has come ends with this call, and the last one gets its number.
    """
    own = list[int]()
    while len(own) < MAX_OWN and (name := f"{caller}:{len(own)}") in turns:
        own.append(turns[name])
    first, latest = min(own, default=math.inf), max(own, default=0)
    if first > now:
        return len(own), latest, False
    due, last = f"{caller}:{own.index(int(first))}", own.pop()
    for members in (turns, line):
        members[due] = last
        members.pop(f"{caller}:{len(own)}", None)
    return len(own), latest, True


def _whole(queue: Queue, now: int) -> tuple[tuple[Booked, ...], int]:
    """The slots that are not over, and their end. If the last are lost, one up to the tail replaces them."""
    slots = tuple(slot for slot in queue.slots if slot.end > now)
    end = slots[-1].end if slots else 0
    if queue.tail > max(now, end):
        slots = (Booked(now, queue.tail, "", "lost"), *slots)
    return slots, max(queue.tail, end)


def _first_fit(slots: Sequence[Booked], request: Request, at: int) -> tuple[int, int]:
    """When a slot for the request can begin, from this instant on, and when it ends."""

    def end_of(begin: int) -> int:
        return min(math.ceil(advance(request.windows, begin, request.cost)), begin + LONGEST_COST)

    end = end_of(at)
    for slot in slots:
        if end <= slot.begin:
            break
        if slot.end > at:
            at = slot.end
            end = end_of(at)
    return at, end


def _gap(line: Sequence[int], start: int, apart: int, after: int) -> int:
    """The first instant from `start` on, or one soon after, where the turns from `after` on leave a gap.

    They do if there are fewer of them than instants so far apart.
    """
    before = bisect_left(line, after)

    def is_full(places: int) -> bool:
        return bisect_left(line, start + places * apart) - before >= places

    low, high = 0, 1
    while is_full(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_full(middle) else (low, middle)
    return start + low * apart
