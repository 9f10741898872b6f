"""Every command and every answer in README.md and docs/ holds for a running service."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.examples import DEMO, ROOT, Reader, blocks, check_json, check_text, read_json

FIRST = [ROOT / name for name in ("README.md", "core/README.md", "docs/tutorial.md", "docs/how-to/other-languages.md")]
"""What readers read of a service that has not been asked much, and whose pace no other crawl shares."""
PAGES = [*FIRST, *sorted(set((ROOT / "docs").rglob("*.md")) - set(FIRST))]
WITH_EXAMPLES = [page for page in PAGES if "```" in page.read_text()]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A service for all pages that start none with settings of their own."""
    with Reader(tmp_path_factory.mktemp("demo")) as reader:
        reader.start(DEMO)
        yield reader


@pytest.mark.timeout(900)  # a page may have twenty commands, and the machine other work
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page_hold(page: Path, demo: Reader, tmp_path: Path) -> None:
    with Reader(tmp_path, demo) as reader:
        reader.follow(page.read_text())


def test_blocks_have_their_marks() -> None:
    page = "<!-- run: exit 1 -->\n```sh\nfalse\n```\n\n```sh\ntrue\n```\n\n- item\n\n  ```json\n  {}\n  ```\n"
    assert [(block.line, block.language, block.mark) for block in blocks(page)] == [
        (3, "sh", "exit 1"),
        (7, "sh", ""),
        (13, "json", ""),
    ]


@pytest.mark.parametrize(
    ("written", "answered"),
    [
        ('{"a": 1, ...}', {"a": 1, "b": 2}),
        ('{"a": {...}, "b": [...]}', {"a": {"c": 1}, "b": [1, 2]}),
        ('{"a": "...", "b": [1, ...]}', {"a": None, "b": [1, 2]}),
        ('{"at": "2026-11-21T18:30:00Z", "age": 0}', {"at": "2027-01-01T00:00:00Z", "age": 7}),
        ('{"source": "fetched"}', {"source": "memory"}),
    ],
)
def test_answers_that_hold(written: str, answered: object) -> None:
    check_json(read_json(written), json.loads(json.dumps(answered)))


@pytest.mark.parametrize(
    ("written", "answered"),
    [
        ('{"a": 1}', {"a": 1, "b": 2}),
        ('{"a": 1, ...}', {"b": 2}),
        ('{"a": 1}', {"a": True}),
        ('{"a": [1]}', {"a": [1, 2]}),
        ('{"at": "2026-11-21T18:30:00Z"}', {"at": None}),
        ('{"age": 0}', {"age": None}),
        ('{"source": "crawl-delay"}', {"source": "memory"}),
        ('{"a": "at 2026-11-21T18:30:00Z"}', {"a": "by 2026-11-21T18:30:00Z"}),
    ],
)
def test_answers_that_no_longer_hold(written: str, answered: object) -> None:
    with pytest.raises(AssertionError):
        check_json(read_json(written), answered)


def test_text_is_compared_by_lines() -> None:
    check_text("a ... c\n...\nlast\n", "a b c\nany\nlines\nlast\n")
    for written in ("a\n", "a\nb\nc\n", "b\n...\n"):
        with pytest.raises(AssertionError):
            check_text(written, "a\nb\n")


@pytest.mark.parametrize(
    "page",
    [
        "```sh\nfalse\n```\n",
        "<!-- run: exit 1 -->\n```sh\ntrue\n```\n",
        "```sh\necho '{}'\n```\n\n```json\n{\"a\": 1}\n```\n",
        "```sh\necho a\n```\n\n```text\nb\n```\n",
        "```python\n1 +\n```\n",
        "```toml\na = 1\n```\n",
    ],
)
def test_page_that_does_not_hold_fails(page: str, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader, pytest.raises((AssertionError, SyntaxError)):
        reader.follow(page)


def test_commands_share_files_and_variables(tmp_path: Path) -> None:
    page = (
        "<!-- run: file a.txt -->\n```text\nx\n```\n```sh\nA=$(cat a.txt)\n```\n```sh\necho $A\n```\n```text\nx\n```\n"
    )
    with Reader(tmp_path) as reader:
        reader.follow(page)


def test_command_that_writes_to_a_file_leaves_the_checkout_as_it_was(tmp_path: Path) -> None:
    before = (ROOT / "CHANGELOG.md").read_bytes()
    with Reader(tmp_path) as reader:
        reader.follow("```sh\necho changed | tee -a CHANGELOG.md\n```\n```text\nchanged\n```\n")
    assert (ROOT / "CHANGELOG.md").read_bytes() == before
