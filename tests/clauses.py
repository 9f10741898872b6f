"""The clauses of docs/reference/robots-spec.md, and where they are cited: "spec B9", "spec F5-F9, X3", "spec H".

`python -m tests.clauses` lists the clauses that nothing outside that page cites.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "robots-spec.md"

_FOLDERS: Final = ("app", "core", "clients/javascript/src", "clients/python/src", "deploy", "docs", "tests")
_SUFFIXES: Final = frozenset(
    {".css", ".h", ".html", ".js", ".jsonl", ".lua", ".md", ".pxd", ".py", ".pyi", ".pyx", ".sh", ".toml", ".yaml"}
)

_SECTION: Final = re.compile(r"^## ([A-Z])\. ", re.MULTILINE)
_CLAUSE: Final = re.compile(r"^(?:- )?\*\*([A-Z][0-9]{1,2}[a-z]?)\.(?: ([^*]+)\.)?\*\*", re.MULTILINE)

_ID: Final = r"[A-Z](?:[0-9]{1,2}[a-z]?)?(?![\w%]|\.\w)"
_GAP: Final = r"\s+(?:(?:#|//|\*)\s*)?"  # a list may continue on the next line of a comment
_RANGE: Final = rf"{_ID}(?:(?:{_GAP}to{_GAP}|-){_ID})?"
_LIST: Final = rf"{_RANGE}(?:(?:,{_GAP}|{_GAP}and{_GAP}){_RANGE})*"
_PROSE: Final = re.compile(rf"\b[Ss]pec{_GAP}({_LIST})|\(((?=[A-Z][0-9]){_LIST})\)")
_CASE: Final = re.compile(rf'"clause": "({_ID})"')
_EACH: Final = re.compile(rf"({_ID})(?:(?:{_GAP}to{_GAP}|-)({_ID}))?")

# In the page itself, clauses refer to each other by their bare ids.
_BARE: Final = re.compile(r"(?<![\w%-])([A-Z][0-9]{1,2}[a-z]?)(?![\w%-])")
_CODE: Final = re.compile(r"`[^`\n]*`")
_SOURCES: Final = re.compile(r"^\| V2 \||\[V2\]", re.MULTILINE)


class Citation(NamedTuple):
    """One clause or section (`last` is None), or a range of clauses, and where it is cited."""

    place: str
    first: str
    last: str | None

    def __str__(self) -> str:
        return f"{self.place}: spec {self.first}" + (f" to {self.last}" if self.last else "")


class Spec:
    """The specification: `titles` of its clauses by id, in the order of the page, and the letters of its `sections`."""

    def __init__(self, page: str) -> None:
        found = _CLAUSE.findall(page)
        self.ids = [clause for clause, _ in found]
        self.titles: Mapping[str, str] = dict(found)
        self.sections = frozenset(_SECTION.findall(page))

    def named(self, citation: Citation) -> list[str] | None:
        """The clauses that a citation names, none for a whole section; None if any does not exist."""
        first, last = citation.first, citation.last or citation.first
        if not citation.last and first in self.sections:
            return []
        if first not in self.titles or last not in self.titles or first[0] != last[0]:
            return None
        named = self.ids[self.ids.index(first) : self.ids.index(last) + 1]
        return named if len(named) > (citation.last is not None) else None

    def uncited(self, citations: Iterator[Citation]) -> list[str]:
        """The ids that no citation names. A clause and its parts (D4, D4c) count as cited together."""
        named = {clause for citation in citations for clause in self.named(citation) or ()}
        wholes = {_whole(clause) for clause in named}
        return [clause for clause in self.ids if named.isdisjoint({clause, _whole(clause)}) and clause not in wholes]


def _whole(clause: str) -> str:
    """The clause that a part belongs to: D4 for D4c."""
    return re.sub("[a-z]", "", clause)


def citations_in(text: str, name: str) -> Iterator[Citation]:
    """The citations in a file's text."""
    pattern = _CASE if name.endswith(".jsonl") else _PROSE
    for found in pattern.finditer(text):
        listed = next(group for group in found.groups() if group)
        for each in _EACH.finditer(listed):
            line = text.count("\n", 0, found.start()) + 1
            yield Citation(f"{name}:{line}", each[1], each[2])


def references(page: str) -> Iterator[Citation]:
    """The references from clause to clause in the page."""
    for number, line in enumerate(page.splitlines(), 1):
        for found in _BARE.finditer(_CODE.sub("", _SOURCES.sub("", line))):
            yield Citation(f"{PAGE.relative_to(ROOT)}:{number}", found[1], None)


def citations() -> Iterator[Citation]:
    """Every citation of the project outside the page."""
    files = [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in _SUFFIXES]
    for path in sorted([*files, *ROOT.glob("*.md")]):
        if path.is_file() and path not in (PAGE, Path(__file__), ROOT / "tests" / "test_clauses.py"):
            yield from citations_in(path.read_text(encoding="utf-8", errors="replace"), str(path.relative_to(ROOT)))


def read() -> Spec:
    """The specification as the page has it."""
    return Spec(PAGE.read_text(encoding="utf-8"))


def main() -> None:
    """Print the clauses that nothing cites."""
    spec = read()
    for clause in spec.uncited(citations()):
        print(f"{clause:5}{spec.titles[clause]}")


if __name__ == "__main__":
    main()
