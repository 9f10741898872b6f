"""The lines of code that the budget of the core counts."""

from pathlib import Path

import pytest

from tests.robots.line_budget import CORE, COUNTED, count

PYTHON = """
# comment
A = 1  # why
'About A.'


def f():
    'Doc'
    return b(

        # why
        'a'
    )
"""
CYTHON = """
cdef class A:
    'Doc.'

    cdef int64_t f(self, const uint8_t *a) except? 1:
        return c"#" if <int>a[0] else &a
"""
C = """
/* a
 * b */
#include <x.h>

int a; /* why */ int b;
char *c = "/* no comment";
/* d */ int d = '"'; // e
"""


@pytest.mark.parametrize(
    ("suffix", "text", "lines"),
    [
        (".py", PYTHON, 5),
        (".py", PYTHON.replace("'", '"""').replace("Doc", "Doc\n\nmore"), 5),
        (".pyx", CYTHON, 3),
        (".pyi", "class A:\n    'Doc.'\n    def f(self) -> int: ...\n", 2),
        (".h", C, 4),
        (".toml", "# why\n\n[a]\nb = '#'\n", 2),
    ],
)
def test_code_is_counted_and_words_are_not(tmp_path: Path, suffix: str, text: str, lines: int) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_text(text)
    assert count(path) == lines


def test_every_file_of_the_core_is_counted() -> None:
    others = {path.suffix for path in CORE.rglob("*") if path.is_file()} - {*COUNTED}
    assert others <= {".so", ".pyc"}
