"""Every clause that code, tests and docs cite is in docs/reference/robots-spec.md."""

from collections import Counter

import pytest

from tests.clauses import PAGE, Citation, Spec, citations, citations_in, read, references

SMALL = Spec(
    "## A. One\n\n**A1. First.** x\n\n**A2. Second.** x\n\n- **A2a. Part.** x\n\n**A3.** x\n\n**A11.** x\n\n"
    "## B. Two\n\n**B1.** x\n"
)


def cited(text: str) -> list[tuple[str, str | None]]:
    return [(first, last) for _, first, last in citations_in(text, "x.py")]


def test_every_cited_clause_exists() -> None:
    spec = read()
    wrong = [str(citation) for citation in citations() if spec.named(citation) is None]
    assert not wrong, "not in docs/reference/robots-spec.md:\n" + "\n".join(wrong)


def test_every_clause_that_the_page_refers_to_exists() -> None:
    spec = read()
    wrong = [str(citation) for citation in references(PAGE.read_text(encoding="utf-8")) if spec.named(citation) is None]
    assert not wrong, "\n".join(wrong)


def test_ids_are_unique_in_order_and_below_their_section() -> None:
    page = PAGE.read_text(encoding="utf-8")
    ids = Spec(page).ids
    assert [clause for clause, times in Counter(ids).items() if times > 1] == []
    for section in sorted(Spec(page).sections):
        below = Spec(page.partition(f"\n## {section}. ")[2].partition("\n## ")[0]).ids
        assert below
        assert {clause[0] for clause in below} == {section}
        assert below == sorted(below, key=lambda clause: (int(clause[1:].rstrip("abcdefg")), clause))


def test_citations_are_found() -> None:
    assert cited("# (RFC 9309 2.2, spec B1 to B7, K1, K2): lines") == [("B1", "B7"), ("K1", None), ("K2", None)]
    assert cited("Spec B and K1 to K2, and more") == [("B", None), ("K1", "K2")]
    assert cited("(spec F5-F9, F8b and\n    # D4c).") == [("F5", "F9"), ("F8b", None), ("D4c", None)]
    assert cited("spec D, RFC 3986; the other form (X5), and J.") == [("D", None), ("X5", None)]
    assert cited("spec: Deployment, inspect A, spec 4, spec Ab, (A), %C3%A9 (C3%A9)") == []


def test_citations_of_cases_are_found() -> None:
    found = list(citations_in('{"id": 1}\n{"id": 2, "clause": "D4", "note": "spec B9"}\n', "cases/x.jsonl"))
    assert found == [Citation("cases/x.jsonl:2", "D4", None)]


@pytest.mark.parametrize(
    ("first", "last", "named"),
    [
        ("A1", None, ["A1"]),
        ("A1", "A3", ["A1", "A2", "A2a", "A3"]),
        ("A", None, []),
        ("A4", None, None),
        ("C", None, None),
        ("A1", "A4", None),
        ("A3", "A1", None),
        ("A1", "A1", None),
        ("A1", "B1", None),
        ("A", "B", None),
    ],
)
def test_citation_names_clauses(first: str, last: str | None, named: list[str] | None) -> None:
    assert SMALL.named(Citation("x.py:1", first, last)) == named


@pytest.mark.parametrize(
    ("cited", "uncited"),
    [
        ([], ["A1", "A2", "A2a", "A3", "A11", "B1"]),
        (["A1", "B"], ["A2", "A2a", "A3", "A11", "B1"]),
        (["A2"], ["A1", "A3", "A11", "B1"]),
        (["A2a"], ["A1", "A3", "A11", "B1"]),
    ],
)
def test_uncited_clauses_are_listed(cited: list[str], uncited: list[str]) -> None:
    assert SMALL.uncited(Citation("x.py:1", clause, None) for clause in cited) == uncited
