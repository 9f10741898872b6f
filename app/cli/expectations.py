"""What a robots.txt is expected to say, for tests of it: a file of expectations, and what came of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from app.cli.bare_host import candidates
from app.cli.exit_codes import Failed
from app.observability.logs import printable
from robots_core.robots.verdict import Permission

FORMAT: Final = (
    "An expectation is a line with a URL, an agent and allow, disallow or defer, with blanks between them: "
    '"https://example.com/private/ Googlebot disallow". The agent may be a whole User-Agent, and the URL a path. '
    "Empty lines and lines that begin with # are ignored."
)

_VERDICTS: Final = {
    **{str(verdict): verdict for verdict in Permission},
    "allowed": Permission.ALLOW,
    "disallowed": Permission.DISALLOW,
    "block": Permission.DISALLOW,
    "blocked": Permission.DISALLOW,
}
"""The words for a verdict; the page reads the same."""

_ANY_SITE: Final = "https://example.com"
"""Stands before a path: the text of a file says the same of every site."""


class Expectation(NamedTuple):
    """What is expected for a URL and an agent, and the line that says so, from 1."""

    line: int
    written: str
    agent: str
    verdict: str

    @property
    def url(self) -> str:
        """The absolute URL."""
        return f"{_ANY_SITE}{self.written}" if self.written.startswith("/") else candidates(self.written)[0]


class Tested(NamedTuple):
    """An expectation and the row of `POST /v1/test` that answers it."""

    expectation: Expectation
    row: Mapping[str, Any]

    @property
    def differs(self) -> bool:
        """Whether the verdict is another one than expected."""
        return bool(self.row["verdict"] != self.expectation.verdict)

    @property
    def message(self) -> str:
        """What was expected, what the file says, and why."""
        rule, expected = self.row["rule"], self.expectation
        why = f"line {rule['line']}: {rule['text']}" if rule else self.row["explanation"]["summary"]
        asked = f"{expected.written} for {expected.agent} ({self.row['dialect']})"
        return printable(f"expected {expected.verdict}, got {self.row['verdict']}: {asked}: {why}")


def read_expectations(text: str, name: str) -> list[Expectation]:
    """The expectations in a file. Raise Failed for a line that cannot be read, and where there are none."""
    found: list[Expectation] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        expected = _read(words)
        if expected is None:
            raise Failed(f"{name}:{number}: cannot read {printable(line.strip()[:200])!r}. {FORMAT}")
        agents, verdict = expected
        found += [Expectation(number, words[0], agent, verdict) for agent in agents]
    if not found:
        raise Failed(f"{name} has no expectations. {FORMAT}")
    return found


def _read(words: Sequence[str]) -> tuple[Sequence[str], Permission] | None:
    """The agents and the verdict of a line; None if it has none."""
    first, last = (_VERDICTS.get(words[at].lower()) for at in (min(1, len(words) - 1), -1))
    if len(words) >= 3 and last is not None:
        return [" ".join(words[1:-1])], last
    if len(words) >= 3 and first is not None:  # the page's other form: the verdict, and the names that it is for
        return " ".join(words[2:]).replace(",", " ").split(), first
    return None


def report(tested: Sequence[Tested], name: str) -> Iterator[str]:
    """A line for each difference, as compilers write them, and one that counts them."""
    differing = [each for each in tested if each.differs]
    for each in differing:
        yield f"{name}:{each.expectation.line}: {each.message}"
    yield f"{len(tested)} tested, {len(differing)} not as expected."


def junit(tested: Sequence[Tested], name: str) -> bytes:
    """The same as a report in JUnit's XML, which CI systems show."""
    failures = sum(each.differs for each in tested)
    numbers = {"tests": str(len(tested)), "failures": str(failures), "errors": "0"}
    suites = Element("testsuites", numbers)
    suite = SubElement(suites, "testsuite", {"name": "robots.txt", **numbers})
    for each in tested:
        expected = each.expectation
        title = printable(f"{expected.written} for {expected.agent} ({each.row['dialect']}): {expected.verdict}")
        place = {"classname": printable(name), "name": title, "file": printable(name), "line": str(expected.line)}
        case = SubElement(suite, "testcase", place)
        if each.differs:
            SubElement(case, "failure", {"type": "verdict", "message": each.message}).text = each.message
    indent(suites)
    return bytes(tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"
