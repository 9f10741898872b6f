"""`python -m app test --expect FILE`: what a robots.txt is expected to say, tested in CI."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from app.cli.exit_codes import Failed
from app.cli.expectations import Expectation, read_expectations
from tests.cli.command import run

ROBOTS = b"User-agent: *\nDisallow: /private/\n\nUser-agent: GPTBot\nDisallow: /\n"
MET = (
    "# all as it is\nhttps://h/private/x Googlebot disallow\n\n"
    "/ Mozilla/5.0 (compatible; GPTBot/1.2) disallow\n/a B allow\n"
)
WRONG = "https://h/a Googlebot allow\nhttps://h/private/x Googlebot ALLOW\n/a\tGPTBot\tallow\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, Path]:
    robots = tmp_path / "robots.txt"
    robots.write_bytes(ROBOTS)
    return str(robots), tmp_path / "robots.expected"


async def test_a_file_that_says_what_is_expected_ends_with_0(files: tuple[str, Path]) -> None:
    robots, expected = files
    expected.write_text(MET)
    ended = await run("test", robots, "--expect", str(expected))
    assert (ended.code, ended.out.splitlines()) == (0, ["3 tested, 0 not as expected."]), ended.err


async def test_each_difference_is_named_with_its_line_and_ends_with_1(files: tuple[str, Path]) -> None:
    robots, expected = files
    expected.write_text(WRONG)
    ended = await run("test", robots, "--expect", str(expected))
    assert ended.code == 1
    private = "https://h/private/x for Googlebot (google): line 2: Disallow: /private/"
    assert ended.out.splitlines() == [
        f"{expected}:2: expected allow, got disallow: {private}",
        f"{expected}:3: expected allow, got disallow: /a for GPTBot (rfc9309): line 5: Disallow: /",
        "3 tested, 2 not as expected.",
    ]


def test_the_forms_of_the_page_are_read_too() -> None:
    text = "/a GPTBot blocked\n/a allowed GPTBot, CCBot\n/a allow disallow\n/a Disallowed Mozilla/5.0 (X, Y) Allow\n"
    assert read_expectations(text, "e") == [
        Expectation(1, "/a", "GPTBot", "disallow"),
        Expectation(2, "/a", "GPTBot", "allow"),
        Expectation(2, "/a", "CCBot", "allow"),
        Expectation(3, "/a", "allow", "disallow"),
        Expectation(4, "/a", "Disallowed Mozilla/5.0 (X, Y)", "allow"),
    ]


async def test_a_junit_report_has_a_case_for_each_expectation(files: tuple[str, Path]) -> None:
    robots, expected = files
    expected.write_text(WRONG + '/a <"&\x07é> allow\n')
    report = expected.with_suffix(".xml")
    ended = await run("test", robots, "--expect", str(expected), "--junit", str(report))
    assert ended.code == 3
    assert "holds no product token" in ended.err
    assert not report.exists()
    expected.write_text(WRONG + '/a B<"&\x07é> allow\n')
    ended = await run("test", robots, "--expect", str(expected), "--junit", str(report))
    assert ended.code == 1
    suites = ElementTree.fromstring(report.read_bytes())
    [suite] = suites
    assert (suite.get("tests"), suite.get("failures")) == (suites.get("tests"), suites.get("failures")) == ("4", "2")
    assert [case.get("line") for case in suite if case.find("failure") is not None] == ["2", "3"]
    assert suite[3].get("name") == '/a for B<"&\\x07é> (rfc9309): allow'
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.get("message") == ended.out.splitlines()[0].partition(":2: ")[2]


async def test_expectations_are_tested_in_each_dialect_and_outcome(files: tuple[str, Path]) -> None:
    robots, expected = files
    expected.write_text("/private/ A disallow\n/ A defer\n")
    dialects = ("--dialect", "rfc9309", "--dialect", "draft1996")
    ended = await run("test", robots, "--expect", str(expected), *dialects)
    assert ended.out.splitlines()[-1] == "4 tested, 2 not as expected."
    ended = await run("test", robots, "--expect", str(expected), "--status", "503", "--no-copy")
    assert ended.out.splitlines()[-1] == "2 tested, 1 not as expected."
    assert f"{expected}:1: expected disallow, got defer" in ended.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no expectations"),
        ("# nothing\n", "has no expectations"),
        ("/a Googlebot allow\n/b Googlebot\n", ":2: cannot read '/b Googlebot'"),
        ("/a allow\n", ":1: cannot read '/a allow'"),
        ("/a Googlebot closed\n", "allow, disallow or defer"),
        ("nonsense Googlebot allow\n", "nonsense"),
    ],
)
async def test_what_cannot_be_read_is_an_error(files: tuple[str, Path], text: str, says: str) -> None:
    robots, expected = files
    expected.write_text(text)
    ended = await run("test", robots, "--expect", str(expected))
    assert (ended.code, ended.out) == (3, "")
    assert says in ended.err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--expect", "missing.txt"], "Cannot read missing.txt"),
        (["--expect", "-", "--agent", "A"], "give no URL, --agent or --json"),
        (["--junit", "x.xml", "http://h/", "--agent", "A"], "give --expect FILE with it"),
        (["http://h/"], "Give at least one --agent"),
        (["--agent", "A"], "the following arguments are required: URL"),
    ],
)
async def test_arguments_that_contradict_each_other_are_an_error(
    files: tuple[str, Path], more: list[str], says: str
) -> None:
    ended = await run("test", files[0], *more)
    assert (ended.code, ended.out) == (3, "")
    assert says in ended.err


async def test_a_report_that_cannot_be_written_is_an_error(files: tuple[str, Path]) -> None:
    robots, expected = files
    expected.write_text(MET)
    ended = await run("test", robots, "--expect", str(expected), "--junit", str(expected / "x.xml"))
    assert ended.code == 3
    assert "Cannot write" in ended.err


def test_the_agent_is_all_between_the_url_and_the_verdict() -> None:
    [found] = read_expectations("  https://h/a#b   Mozilla/5.0 (X;  GPTBot/1.2)  Disallow ", "name")
    assert found == Expectation(1, "https://h/a#b", "Mozilla/5.0 (X; GPTBot/1.2)", "disallow")
    with pytest.raises(Failed, match="name:1"):
        read_expectations("a", "name")
