"""Changes to a package that its tests miss: `make mutants OF=app/history AREA=history`.

A mutant has another comparison, operator, number or truth value in one place, in Python or Lua. The tests run on a copy
in build/mutants, and each mutant that they pass is printed: it needs a test, or does what the original does.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

COPY: Final = Path("build/mutants")
COPIED: Final = ("app", "core", "tests", "docs", "deploy", "clients", "pyproject.toml", "README.md")
SLOWER: Final = 5
"""How many times as long as on the package itself the tests may take: a mutant that makes them hang is found."""

_PAIRS: Final = (
    *(("<", "<="), (">", ">="), ("==", "!="), ("is", "is not"), ("in", "not in"), ("and", "or"), ("+", "-")),
    *(("True", "False"), ("true", "false"), ("min", "max"), ("any", "all")),
)
OTHERS: Final = {**dict(_PAIRS), **{b: a for a, b in _PAIRS}, "~=": "==", "*": "+", "//": "*", "%": "+", "not": ""}
_OPERATOR: Final = re.compile(r"is\s+not|not\s+in|\b(?:is|in|and|or)\b|[<>=!]=|//|[-+*%<>]")
_LUA: Final = re.compile(
    r"--[^\n]*|'[^'\n]*'|\"[^\"\n]*\"|(?P<token>[<>=~]=|[-+*%<>]|\b(?:and|or|not|true|false|min|max)\b|\b\d+\b)"
)


class Mutant(NamedTuple):
    """A text in place of the bytes from `begin` to `end` of a file."""

    path: Path
    begin: int
    end: int
    text: str

    def of(self, source: bytes) -> bytes:
        """The file with the mutant."""
        return source[: self.begin] + self.text.encode() + source[self.end :]

    def shown(self, source: bytes) -> str:
        """Where it is, and the line with it."""
        number = source.count(b"\n", 0, self.begin)
        return f"{self.path}:{number + 1}: {self.of(source).splitlines()[number].decode().strip()}"


def mutants_of(path: Path) -> list[Mutant]:
    """The mutants of a file."""
    source = path.read_bytes()
    tokens = _of_lua(source) if path.suffix == ".lua" else _of_python(source)
    return [
        Mutant(path, begin, begin + len(token.encode()), other)
        for begin, token in tokens
        if (other := _other(token)) is not None
    ]


def _other(token: str) -> str | None:
    digits = token.replace("_", "")
    return str(int(digits) + 1) if digits.isdecimal() else OTHERS.get(" ".join(token.split()))


def _of_lua(source: bytes) -> Iterator[tuple[int, str]]:
    for found in _LUA.finditer(source.decode("latin-1")):
        if found["token"]:
            yield found.start(), found["token"]


def _of_python(source: bytes) -> Iterator[tuple[int, str]]:
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    for node in _computing(ast.parse(source)):
        for left, right in pairwise(_operands(node)):
            begin, end = _end(lines, left), _begin(lines, right)
            if found := _OPERATOR.search(source[begin:end].decode("latin-1")):
                yield begin + found.start(), found[0]
        match node:
            case ast.UnaryOp(ast.Not()):
                yield _begin(lines, node), "not"
            case ast.Call(ast.Name("min" | "max" | "any" | "all" as name)):
                yield _begin(lines, node), name
            case ast.Constant(bool() | int()):
                begin = _begin(lines, node)
                yield begin, source[begin : _end(lines, node)].decode()
            case _:
                pass


def _begin(lines: list[int], node: Any) -> int:
    return int(lines[node.lineno - 1] + node.col_offset)


def _end(lines: list[int], node: Any) -> int:
    return int(lines[node.end_lineno - 1] + node.end_col_offset)


def _operands(node: ast.AST) -> Sequence[Any]:
    match node:
        case ast.Compare(left, _, comparators):
            return [left, *comparators]
        case ast.BinOp(left, _, right):
            return [left, right]
        case ast.BoolOp(_, values):
            return values
        case _:
            return []


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but annotations."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _computing(child)


def run(tests: list[str], timeout: float | None = None) -> bool:
    """Whether the tests pass on the copy; those that take longer do not."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{COPY.absolute()}:{COPY.absolute() / 'core'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        ended = subprocess.run(command, cwd=COPY, env=environment, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def main() -> int:
    """Print the mutants that survive; 1 if some do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="the package or the file to change")
    parser.add_argument("tests", nargs="+", help="the tests that should notice, as pytest takes them")
    parser.add_argument(
        "--count", type=int, default=40, help="how many mutants, drawn at random; 0 for all; default 40"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    arguments = parser.parse_args()

    package: Path = arguments.package
    paths = [package] if package.is_file() else sorted(it for it in package.rglob("*") if it.suffix in (".py", ".lua"))
    found = [mutant for path in paths for mutant in mutants_of(path)]
    chosen = Random(arguments.seed).sample(found, min(arguments.count or len(found), len(found)))
    shutil.rmtree(COPY, ignore_errors=True)
    for name in COPIED:
        copy = shutil.copytree if Path(name).is_dir() else shutil.copy2
        COPY.mkdir(parents=True, exist_ok=True)
        copy(name, COPY / name)
    (COPY / "build").mkdir()
    (COPY / "build/corpus").symlink_to(Path("build/corpus").absolute())

    began = time.monotonic()
    if not run(arguments.tests):
        sys.exit("The tests fail without a mutant.")
    timeout = SLOWER * (time.monotonic() - began) + 10
    survivors = 0
    for mutant in chosen:
        source = mutant.path.read_bytes()
        (COPY / mutant.path).write_bytes(mutant.of(source))
        if run(arguments.tests, timeout):
            survivors += 1
            sys.stdout.write(f"{mutant.shown(source)}\n")
            sys.stdout.flush()
        (COPY / mutant.path).write_bytes(source)
    sys.stdout.write(f"{len(chosen)} of {len(found)} mutants were tried; {survivors} survive.\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
