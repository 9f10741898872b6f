"""`python -m app test`: a local robots.txt, with real and simulated outcomes."""

import json
import sys
from pathlib import Path

import pytest

from app.__main__ import main
from app.api.answers.encoding import AnswerEncoder
from app.api.trials.reading import EXPLAINED_LIMIT
from app.decisions.evaluate import Decision
from robots_core.robots.access import BODY_LIMIT
from tests.cli.command import run

ROBOTS = b"User-agent: *\nDisallow: /private/\nDissallow: /typo/\n\nUser-agent: OtherBot\nDisallow:\n"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "robots.txt"
    path.write_bytes(ROBOTS)
    return str(path)


@pytest.mark.parametrize(
    ("urls", "more", "code"),
    [
        (["http://h/"], [], 0),
        (["http://h/", "http://h/private/"], [], 1),
        (["http://h/", "http://h/private/"], ["--status", "503", "--for", "3d"], 1),
        (["http://h/", "http://h/private/"], ["--status", "503", "--for", "31d"], 2),
        (["http://h/"], ["--status", "503", "--no-copy"], 2),
        (["http://h/private/"], ["--status", "404"], 0),
        (["http://h/"], ["--cause", "blocked_address"], 1),
    ],
)
async def test_exit_code_is_the_worst_verdict(file: str, urls: list[str], more: list[str], code: int) -> None:
    ended = await run("test", file, *urls, "--agent", "ExampleBot", *more)
    assert ended.code == code, ended.err


async def test_rows_go_to_stdout_and_warnings_to_stderr(file: str) -> None:
    ended = await run("test", file, "http://h/typo/", "http://h/", "--agent", "ExampleBot", "--agent", "OtherBot")
    assert ended.out.splitlines() == [
        "disallow  ExampleBot (rfc9309)  http://h/typo/  line 3: Dissallow: /typo/",
        (
            "allow     OtherBot (rfc9309)  http://h/typo/  The group for otherbot has only empty rules, so this URL is "
            "allowed; the group for *, which disallows it (line 3), does not apply to otherbot."
        ),
        "allow     ExampleBot (rfc9309)  http://h/  No rule in the group for * matches this URL, so it is allowed.",
        "allow     OtherBot (rfc9309)  http://h/  The group for otherbot has only empty rules, so this URL is allowed.",
    ]
    assert f"{file}:3: typo-key:" in ended.err


async def test_file_from_stdin_and_json_output() -> None:
    ended = await run("test", "-", "http://h/private/", "--agent", "A", "--dialect", "google", "--json", given=ROBOTS)
    assert ended.code == 1
    [row] = json.loads(ended.out)["rows"]
    assert (row["dialect"], row["rule"]["line"]) == ("google", 2)


async def test_simulated_outcome_shows_the_timeline_of_the_copy(file: str) -> None:
    ended = await run("test", file, "http://h/private/", "--agent", "A", "--status", "503", "--for", "3d")
    lines = ended.out.splitlines()
    assert lines[1] == "  after     0 s: disallow (rule, from the copy)"
    assert lines[2].startswith("  after     29 d")
    assert lines[2].endswith(": defer (unreachable)")


@pytest.mark.parametrize(
    "arguments",
    [
        ("/nowhere/robots.txt", "http://h/", "--agent", "A"),
        ("FILE", "--agent", "A"),
        ("FILE", "http://h/"),
        ("FILE", "nonsense", "--agent", "A"),
        ("FILE", "http://h/", "--agent", "A", "--for", "3d"),
        ("FILE", "http://h/", "--agent", "A", "--status", "503", "--for", "3 moons"),
        ("FILE", "http://h/", "--agent", "A", "--status", "99"),
        ("FILE", "http://h/", "--agent", "A", "--status", "302"),
    ],
)
async def test_bad_arguments_exit_with_3_and_an_error(file: str, arguments: tuple[str, ...]) -> None:
    ended = await run("test", *(file if it == "FILE" else it for it in arguments))
    assert (ended.code, ended.out) == (3, "")
    assert ended.err
    assert "Traceback" not in ended.err


async def test_a24_a_verdict_that_the_cut_part_could_change_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"User-agent: *\nDisallow: /a\n" + b"#\n" * BODY_LIMIT)
    ended = await run("test", str(path), "http://h/a", "http://h/robots.txt", "--agent", "A")
    assert ended.out.splitlines() == [
        "disallow  A (rfc9309)  http://h/a  line 2: Disallow: /a",
        "  partial   lines behind the first 512,000 bytes, which are not read, could say otherwise",
        "allow     A (rfc9309)  http://h/robots.txt  /robots.txt itself may always be fetched.",
    ]


async def test_c12_the_pace_that_bing_inherits_is_told_from_its_own() -> None:
    robots = b"User-agent: *\nCrawl-delay: 20\nDisallow: /y\nUser-agent: bingbot\nDisallow: /x\n"
    ended = await run("test", "-", "http://h/", "--agent", "bingbot", "--explain", given=robots)
    assert "  rate      one document every 20 s (crawl-delay, line 2 of the group for *)" in ended.out.splitlines()
    assert "only the Crawl-delay of * (line 2) counts for this crawler, too" in ended.out


def test_a_row_that_fails_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    def fail(_encoder: AnswerEncoder, _decision: Decision, _fields: set[str]) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(AnswerEncoder, "encode", fail)
    monkeypatch.setattr(sys, "argv", ["app", "test", file, "http://h/", "--agent", "A"])
    code = main()
    printed = capsys.readouterr()
    assert (code, printed.out) == (3, "")
    assert "ZeroDivisionError" in printed.err


async def test_every_row_is_explained_on_the_command_line(file: str) -> None:
    urls = [f"http://h/{number}" for number in range(EXPLAINED_LIMIT + 1)]
    ended = await run("test", file, *urls, "--agent", "ExampleBot", "--explain")
    assert ended.code == 0, ended.err
    assert ended.out.count("  found     no group names examplebot") == len(urls)
