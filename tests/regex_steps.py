"""Count the steps of a regular expression: a backtracking matcher that tries what `re` tries.

`re` itself does not count. This matcher walks the same parsed pattern in the same order, without the shortcuts of `re`,
so an expression that is linear here is linear there. It supports the nodes that expressions of app/ have.
"""

import importlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

# Private modules of `re`, which have no types.
op: Any = importlib.import_module("re._constants")
_parser: Any = importlib.import_module("re._parser")
_CATEGORIES = {op.CATEGORY_SPACE: str.isspace, op.CATEGORY_DIGIT: str.isdigit}


@cache
def _parsed(pattern: re.Pattern[Any]) -> Any:
    """The parsed pattern as nested tuples. Bytes are decoded as Latin-1, which is how `re` treats them."""
    source = pattern.pattern
    return _plain(_parser.parse(source if isinstance(source, str) else source.decode("latin-1"), pattern.flags))


def _plain(node: Any) -> Any:
    return tuple(map(_plain, node)) if isinstance(node, _parser.SubPattern | list | tuple) else node


class StepCounter:
    """Matches one pattern as `re` would; `steps` counts attempts to match a node at a position."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._tree = _parsed(pattern)
        self._ignores_case = bool(pattern.flags & re.IGNORECASE)
        self.steps = 0

    def match(self, text: str) -> list[int]:
        """The end of a match at the start of the text, if there is one."""
        return self._at(text, 0)

    def fullmatch(self, text: str) -> list[int]:
        """The end of a match of the whole text, if there is one."""
        return [end for end in self._ends(self._tree, text, 0) if end == len(text)][:1]

    def findall(self, text: str) -> list[int]:
        """The ends of all matches, as `findall`, `finditer` and `sub` find them."""
        found: list[int] = []
        start = 0
        while start <= len(text):
            ends = self._at(text, start)
            found += ends
            start = max(ends[0], start + 1) if ends else start + 1
        return found

    def search(self, text: str) -> list[int]:
        """The end of the first match, if there is one."""
        return next((ends for start in range(len(text) + 1) if (ends := self._at(text, start))), [])

    def _at(self, text: str, start: int) -> list[int]:
        return [end for end, _ in zip(self._ends(self._tree, text, start), range(1), strict=False)]

    def _ends(self, nodes: Sequence[Any], text: str, start: int) -> Iterator[int]:
        """The ends of a sequence of nodes, in the order in which `re` tries them."""
        self.steps += 1
        if not nodes:
            yield start
            return
        for end in self._node_ends(nodes[0], text, start):
            yield from self._ends(nodes[1:], text, end)

    def _node_ends(self, node: Any, text: str, start: int) -> Iterator[int]:
        code, argument = node
        match code:
            case op.LITERAL | op.NOT_LITERAL | op.ANY | op.IN:
                if start < len(text) and self._is_one(node, text[start]):
                    yield start + 1
            case op.SUBPATTERN:
                yield from self._ends(argument[3], text, start)
            case op.BRANCH:
                for branch in argument[1]:
                    yield from self._ends(branch, text, start)
            case op.MAX_REPEAT:
                yield from self._repeated(argument, text, start)
            case op.POSSESSIVE_REPEAT:
                yield from [end for end, _ in zip(self._repeated(argument, text, start), range(1), strict=False)]
            case op.ASSERT | op.ASSERT_NOT:
                if self._looks(argument, text, start) is (code is op.ASSERT):
                    yield start
            case op.AT:
                if start == (0 if argument in {op.AT_BEGINNING, op.AT_BEGINNING_STRING} else len(text)):
                    yield start
            case _:
                raise NotImplementedError(code)

    def _looks(self, argument: Any, text: str, start: int) -> bool:
        """Whether a lookahead or a lookbehind matches; all lookbehinds in use are one character long."""
        direction, inner = argument
        if direction > 0:
            return any(True for _ in self._ends(inner, text, start))
        return start > 0 and self._is_one(inner[0], text[start - 1])

    def _repeated(self, argument: Any, text: str, start: int) -> Iterator[int]:
        low, high, inner = argument
        if len(inner) == 1 and inner[0][0] in {op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN}:
            end = start
            while end < len(text) and end - start < high and self._is_one(inner[0], text[end]):
                self.steps += 1
                end += 1
            for stop in range(end, start + low - 1, -1):
                self.steps += 1
                yield stop
            return
        yield from self._groups(inner, low, high, text, start)

    def _groups(self, inner: Sequence[Any], low: int, high: int, text: str, start: int) -> Iterator[int]:
        self.steps += 1
        if high > 0:
            for end in self._ends(inner, text, start):
                if end > start:
                    yield from self._groups(inner, max(low - 1, 0), high - 1, text, end)
        if low <= 0:
            yield start

    def _is_one(self, node: Any, character: str) -> bool:
        code, argument = node
        if self._ignores_case and code is not op.ANY:
            return any(self._is_in(node, it) for it in {character, character.lower(), character.upper()})
        match code:
            case op.ANY:
                return character != "\n"
            case op.LITERAL:
                return bool(ord(character) == argument)
            case op.NOT_LITERAL:
                return bool(ord(character) != argument)
            case _:
                return self._is_in(node, character)

    def _is_in(self, node: Any, character: str) -> bool:
        code, argument = node
        if code is not op.IN:
            return bool((ord(character) == argument) is (code is op.LITERAL))
        negated = argument[0][0] is op.NEGATE
        for kind, value in argument:
            match kind:
                case op.LITERAL if ord(character) == value:
                    return not negated
                case op.RANGE if value[0] <= ord(character) <= value[1]:
                    return not negated
                case op.CATEGORY if _CATEGORIES[value](character):
                    return not negated
        return negated
