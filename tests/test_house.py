"""House rules: short files and test names, no imports from test modules, one type and one constant for each name."""

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import TOOL_TESTS

ROOT = Path(__file__).parent.parent
LONGEST_FILE = 600
LONGEST_TEST_NAME = 69
OF_THE_LIBRARY = {"Decision", "RequestRate", "VisitTime"}
"""Types of the service or the core whose names the public interface of robots-core has, too."""


@cache
def modules(directory: str) -> list[tuple[str, str, ast.Module]]:
    """The path, the source and the syntax tree of each module below a directory."""
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / directory).rglob("*.py"))}
    return [(path, source, ast.parse(source)) for path, source in sources.items()]


@pytest.fixture(scope="module", autouse=True)
def without_collections() -> Iterator[None]:
    """Collections would visit a million nodes of syntax trees, here and in later tests: the trees go at the end."""
    gc.disable()
    yield
    modules.cache_clear()
    gc.enable()


def statements(block: ast.AST) -> Iterator[ast.AST]:
    """All statements, without the expressions in them."""
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from statements(node)


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_file_of_the_tests_is_over_600_lines() -> None:
    lengths = {path: len(source.splitlines()) for path, source, _ in modules("tests")}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_every_test_runs_by_one_of_the_two_commands() -> None:
    """What `make test` leaves out, `make test-tools` runs."""
    script = (ROOT / "tests" / "tools.sh").read_text()
    [always] = re.findall(r'^paths="(.+?)"$', script, re.MULTILINE)
    named = {*always.split(), *re.findall(r"^need (\S+) ", script, re.MULTILINE)}
    assert {path for path in named if not path.startswith("tests/clients/")} == {f"tests/{it}" for it in TOOL_TESTS}
    assert all((ROOT / path).exists() for path in named)


def test_test_names_have_fewer_than_70_characters() -> None:
    names = {
        (path, node.name)
        for path, _, tree in modules("tests")
        for node in statements(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    assert {(path, name) for path, name in names if len(name) > LONGEST_TEST_NAME} == set()


def test_no_module_imports_from_a_test_module() -> None:
    found = {
        (path, name)
        for path, _, tree in modules("tests")
        for name in imported_modules(tree)
        if name.startswith("tests.") and name.split(".")[-1].startswith("test_")
    }
    # Move code that several test modules need to a module of its own, such as tests/doubles.py.
    assert found == set()


def test_no_two_modules_define_a_type_of_the_same_name() -> None:
    defined = defaultdict(set)
    for path, _, tree in [*modules("app"), *modules("core/robots_core")]:
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name].add(path)
    shared = {name for name, paths in defined.items() if len(paths) > 1}
    assert shared == OF_THE_LIBRARY


def constants(tree: ast.Module) -> Iterator[str]:
    """The public names in capitals that a module assigns, but those of type variables."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "TypeVar":
                continue
            targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [
                name for target in targets for name in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            names = [name.id for name in named if isinstance(name, ast.Name)]
            yield from (name for name in names if name.isupper() and not name.startswith("_"))


def test_no_two_modules_define_a_constant_of_the_same_name() -> None:
    defined = defaultdict(list)
    for path, _, tree in [*modules("app"), *modules("core/robots_core")]:
        for name in constants(tree):
            defined[name].append(path)
    assert len(defined) > 200
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}
