"""The mutants of a file: one change each, in what is computed."""

import ast
from pathlib import Path

import pytest

from tests.mutants import mutants_of

PYTHON = """\
LIMIT: Literal[1] = 1_000
def f(a: int, *b: int, **c: int) -> Literal[2]:
    "1 < 2"
    return (a <
            LIMIT) and not any(x is not 3 for x in b) or a + max(1 * 2, a % 3) not in c
"""
LUA = """\
-- 1 < 2
local a = '1 < 2' .. math.max(b + 1, 2)
if a ~= 3 and not c[4] then return a >= 5 end
"""


@pytest.mark.parametrize(
    ("name", "source", "texts"),
    [
        ("a.py", PYTHON, ["1001", "and", "or", "<=", "", "all", "is", "4", "in", "-", "min", "+", "2", "3", "+", "4"]),
        ("a.lua", LUA, ["min", "-", "2", "3", "==", "4", "or", "", "5", ">", "6"]),
    ],
)
def test_each_mutant_changes_one_thing(tmp_path: Path, name: str, source: str, texts: list[str]) -> None:
    path = tmp_path / name
    path.write_text(source)
    found = mutants_of(path)
    assert [mutant.text for mutant in found] == texts
    before = source.splitlines()
    for mutant in found:
        after = mutant.of(source.encode()).decode()
        [changed] = [line for line, other in zip(after.splitlines(), before, strict=True) if line != other]
        assert mutant.shown(source.encode()).endswith(changed.strip())
        if name == "a.py":
            ast.parse(after)
