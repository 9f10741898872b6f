"""Checks for rules of a group that are duplicates or that another rule makes pointless (spec D7).

Linear except for sorting: a rule is compared with the longest other rule that is its prefix.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from robots_core.lint.advice import Warned, name_of
from robots_core.lint.checked_file import CheckedFile, GroupedRule

_ByPath: TypeAlias = Mapping[bytes, GroupedRule]


class _Overlaps(NamedTuple):
    duplicate: list[Warned]
    shadowed: list[Warned]
    both: list[Warned]


def _overlaps(file: CheckedFile) -> _Overlaps:
    found = _Overlaps([], [], [])
    others = _Others(file)
    for group, of_group in groupby(file.paths, attrgetter("group")):
        rules = list(of_group)
        if len(rules) > 1:
            allows, disallows = _first_of_each(rules, found)
            _find_shadowed(allows, others.of(group, allows=False), found.shadowed)
            _find_shadowed(disallows, others.of(group, allows=True), found.shadowed)
    found.shadowed.sort()
    found.both.sort()
    return found


class _Others:
    """The paths of the rules of each kind that may bind one crawler together with those of a group (spec C5).

    These are the groups with a token in common, and those with one in common with these.
    """

    def __init__(self, file: CheckedFile) -> None:
        self._joined: dict[int, int] = {}
        by_token: dict[str, int] = {}
        for agent in file.agents:
            first = by_token.setdefault(agent.token, agent.group)
            if first != agent.group:
                self._joined[self._root(agent.group)] = self._root(first)
        self._paths: dict[tuple[int, bool], set[bytes]] = {}
        for rule in file.paths:
            self._paths.setdefault((self._root(rule.group), rule.allows), set()).add(rule.value)

    def _root(self, group: int) -> int:
        while (above := self._joined.get(group, group)) != group:
            self._joined[group] = group = self._joined.get(above, above)
        return group

    def of(self, group: int, *, allows: bool) -> Collection[bytes]:
        return self._paths.get((self._root(group), allows), ())


def _first_of_each(rules: Sequence[GroupedRule], found: _Overlaps) -> tuple[_ByPath, _ByPath]:
    """The first Allow and the first Disallow of each path; others are reported."""
    allows: dict[bytes, GroupedRule] = {}
    disallows: dict[bytes, GroupedRule] = {}
    for rule in rules:
        first = (allows if rule.allows else disallows).setdefault(rule.value, rule)
        if first is not rule:
            found.duplicate.append(Warned(rule.line, f"Line {first.line} says the same. One of the two is enough."))
    for path in allows.keys() & disallows.keys():
        message = (
            f"Line {allows[path].line} allows the same path. Most crawlers obey the Allow, some the first of both."
        )
        found.both.append(Warned(disallows[path].line, f"{message} Keep the one that you mean."))
    return allows, disallows


def _find_shadowed(rules: _ByPath, others: Collection[bytes], found: list[Warned]) -> None:
    """Rules with a shorter rule of their kind as prefix, and no rule of the other kind in between.

    Only paths that normalisation does not change are compared.
    """
    if len(rules) < 2 or not all(map(_is_plain, others)):
        return
    plain = rules if _is_plain(b"/".join(rules)) else filter(_is_plain, rules)
    lengths = sorted(map(len, others))
    wider: list[tuple[bytes, bytes]] = []  # the prefixes of the current path, each with and without a final `*`
    for path in sorted(plain):
        while wider and not path.startswith(wider[-1][1]):
            wider.pop()
        if wider and bisect_left(lengths, len(wider[-1][0])) == bisect_right(lengths, len(path)):
            rule, wide = rules[path], rules[wider[-1][0]]
            message = (
                f"The {name_of(rule.key)} of line {wide.line} covers this path, so for most crawlers this line changes"
                " nothing."
            )
            found.append(Warned(rule.line, message))
        stem = path.rstrip(b"*")
        if b"*" not in stem and stem[-1:] != b"$":
            wider.append((path, stem))


def _is_plain(path: bytes) -> bool:
    return path.isascii() and b"%" not in path


def duplicate_rule(file: CheckedFile) -> Iterator[Warned]:
    """Duplicate rules of a group."""
    yield from file.once(_overlaps).duplicate


def shadowed_rule(file: CheckedFile) -> Iterator[Warned]:
    """Rules for paths that a wider rule decides in the same way."""
    yield from file.once(_overlaps).shadowed


def allowed_and_disallowed(file: CheckedFile) -> Iterator[Warned]:
    """One path with an Allow and a Disallow."""
    yield from file.once(_overlaps).both
