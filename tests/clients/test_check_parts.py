"""The parts of `robots-decisions check`: sorting in bounded memory, what is done, and whose turn a fetch was."""

import argparse
import asyncio
import json
import os
import random
import re
import tomllib
from collections.abc import AsyncGenerator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from robots_decisions import Deferred, Verdict
from robots_decisions.cli import asking, rows, sorting
from robots_decisions.cli import batches as batch_parts
from robots_decisions.cli.batches import (
    BATCH_BYTES,
    BATCH_LINES,
    WAITING_ORIGINS,
    Batch,
    PutOff,
    Ranges,
    batches,
    ranges,
)
from robots_decisions.cli.entries import LISTED_LINE_LIMIT, URL_LIMIT, Entry, NotAsked, line_of, read_url, record_of
from robots_decisions.cli.failures import Failed, Parser
from robots_decisions.cli.main import COMMANDS
from robots_decisions.cli.origins import candidates, origin_of
from robots_decisions.cli.pace_audit import CRAWLERS, PaceAudit
from robots_decisions.cli.sorting import Sorter
from robots_decisions.cli.sources import Sources
from robots_decisions.permits import BUSY, RetryLater

from tests.clients.crawling import ROOT


def records(count: int) -> list[bytes]:
    chosen = random.Random(count)
    urls = [f"http://{chosen.randrange(50)}.example/{'x' * chosen.randrange(100)}" for _ in range(count)]
    return [record for n, url in enumerate(urls) if (record := record_of(n, f"{url}\n".encode(), read_url))]


@pytest.mark.parametrize("run_bytes", [1, 300, 10_000, sorting.RUN_BYTES])
def test_records_are_sorted_in_little_memory_as_in_much(run_bytes: int) -> None:
    given = records(2000)
    sorter = Sorter(run_bytes)
    for record in given:
        sorter.add(record)
    assert list(sorter.sorted()) == sorted(given)
    assert sorter.count == len(given)


def test_digest_tells_other_lines() -> None:
    def digest(given: list[bytes], run_bytes: int) -> str:
        sorter = Sorter(run_bytes)
        for record in given:
            sorter.add(record)
        found = sorter.digest
        assert list(sorter.sorted()) == sorted(given)
        return found

    given = records(100)
    assert digest(given, 1000) == digest(given, 1000)
    assert len({digest(it, 1000) for it in (given, given[1:], given[:-1], [*given[:50], given[0], *given[51:]])}) == 4


@pytest.mark.parametrize(
    "done", [[], [(0, 3)], [(5, 900), (1500, 1501)], [(10, 20), (0, 10), (999, 1200)], [(0, 2000)]]
)
def test_batches_have_every_record_that_is_not_done(done: list[tuple[int, int]]) -> None:
    given = sorted(records(2000))
    done_ranges = Ranges()
    for start, end in done:
        done_ranges.add(start, end)
    found = list(batches(iter(given), done_ranges.gaps(len(given))))
    places = [place for batch in found for place in batch.places]
    assert places == [place for place in range(2000) if not any(start <= place < end for start, end in done)]
    assert [record for batch in found for record in batch.records] == [given[place] for place in places]
    assert all(len(batch.records) <= BATCH_LINES for batch in found)


def test_records_that_were_put_off_come_in_batches_of_few_origins() -> None:
    given = [b"http://h%d\t\t%015d+\thttp://h%d/\n" % (n // 2, n, n // 2) for n in range(1000, 1200)]
    places = [2 * n for n in range(200)]
    put_off = PutOff()
    put_off.add(Batch(places[:70], given[:70]))
    put_off.add(Batch(places[70:], given[70:]))
    found = list(put_off.all())
    put_off.close()
    assert [(place, record) for batch in found for place, record in zip(*batch, strict=True)] == [
        *zip(places, given, strict=True)
    ]
    assert [len({line.origin for line in batch.lines()}) for batch in found] == [WAITING_ORIGINS] * 6 + [4]


def test_places_that_are_done_are_ranges() -> None:
    assert list(ranges([3])) == [(3, 4)]
    assert list(ranges([0, 1, 2, 5, 7, 8])) == [(0, 3), (5, 6), (7, 9)]


def test_batch_of_long_lines_is_bounded() -> None:
    given = [record for n in range(100) if (record := record_of(n, b"http://h/" + b"x" * 16_000, read_url))]
    found = list(batches(given, [(0, 100)]))
    assert sum(len(batch.records) for batch in found) == 100
    assert max(sum(map(len, batch.records)) for batch in found) < BATCH_BYTES + 20_000


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://h/p", "http://h"),
        ("HTTP://User:pw@H.Example:80?q", "http://h.example"),
        ("https://h:443/", "https://h"),
        ("https://h:80#f", "https://h:80"),
        ("h.example/p", "https://h.example"),
        ("h.example:443", "https://h.example"),
        ("[::1]:8080/x", "https://[::1]:8080"),
        ("http://é.example/", "http://é.example"),
        ("http:///p", ""),
        ("http://", ""),
        ("ftp://h/", ""),
        ("http://h\\@evil/", "http://h"),
        ("http://h\tx/", "http://h"),
    ],
)
def test_lines_are_sorted_by_origin(url: str, origin: str) -> None:
    assert origin_of(url.encode()).decode() == origin
    record = record_of(7, f"{url}\n".encode(), read_url)
    assert record is not None
    line = line_of(record)
    assert (line.number, line.origin, line.entry) == (7, origin, read_url(url.encode()))


@pytest.mark.parametrize(
    "bare",
    [
        "example.com",
        "example.com/page?a=b",
        "example.com:8080/x",
        "localhost:8080",
        "127.0.0.1",
        "[::1]:80/",
        "é.example",
    ],
)
def test_bare_host_is_tried_by_https_first(bare: str) -> None:
    assert candidates(bare) == (f"https://{bare}", f"http://{bare}")


@pytest.mark.parametrize(
    "written",
    ["http://example.com/", "gopher://h.example/", "mailto:a@example.com", "nonsense", "", "/a.html", "a b.example"],
)
def test_other_text_is_no_bare_host(written: str) -> None:
    assert candidates(written) == (written,)


def _entry(written: bytes) -> Entry:
    return Entry(written.decode())


def _asking(ask: asking.Ask, done: list[int], **options: Any) -> asking.Asking:
    """Asks by `ask`; the numbers of the lines that are answered are added to `done`."""
    clients: Any = (None, None)
    return asking.Asking(clients, ask, lambda line, _: line.number, lambda _, numbers: done.extend(numbers), **options)


async def test_batches_of_a_log_are_done_in_order_though_the_service_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SILENCE", 0.0)
    monkeypatch.setattr(asking, "LOOK", 0.001)
    given = [f"http://{name}/{'x' * (BATCH_BYTES // 2)}" for name in "aaaaabbbb"]
    recorded = [record for n, url in enumerate(given) if (record := record_of(n, url.encode(), _entry))]

    async def ask(_client: Any, entries: Sequence[Entry], *_: Any) -> AsyncGenerator[Verdict, None]:
        for entry in entries:
            await asyncio.sleep(0.02)  # several looks
            yield Verdict(entry.url, "A", "allow", "no_match")

    done: list[int] = []
    work = _asking(ask, done, concurrency=1, in_order=True)
    await work.run(batches(iter(recorded), [(0, len(recorded))]))
    assert done == list(range(len(recorded)))


async def test_a_service_that_is_slow_for_all_batches_gets_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SILENCE", 0.05)
    monkeypatch.setattr(asking, "LOOK", 0.005)
    given = [f"http://{n:03}/{'x' * (BATCH_BYTES // 8)}" for n in range(300)]
    recorded = sorted(record for n, url in enumerate(given) if (record := record_of(n, url.encode(), _entry)))
    serving = asyncio.Lock()
    running = most = answered = 0

    async def ask(_client: Any, entries: Sequence[Entry], *_: Any) -> AsyncGenerator[Verdict, None]:
        nonlocal running, most, answered
        running += 1
        most = max(most, running)
        for entry in entries:
            async with serving:  # a stall of all, now and then
                answered += 1
                await asyncio.sleep(0.1 if answered % 10 == 0 else 0.001)
            yield Verdict(entry.url, "A", "allow", "no_match")
        running -= 1

    done: list[int] = []
    work = _asking(ask, done, concurrency=2)
    await work.run(batches(iter(recorded), [(0, len(recorded))]))
    assert sorted(done) == list(range(len(given)))
    assert most <= 8


@pytest.mark.parametrize(
    ("seconds", "fails"), [(0.001, False), (asking.MAX_BUSY_DELAY + 1, True)], ids=["soon", "not today"]
)
async def test_a_batch_that_others_crowd_out_is_asked_again(seconds: float, fails: bool) -> None:
    given = [f"http://{name}/{'x' * (BATCH_BYTES // 2)}" for name in "aaaabbbb"]
    recorded = [record for n, url in enumerate(given) if (record := record_of(n, url.encode(), _entry))]
    refused = 0

    async def ask(_client: Any, entries: Sequence[Entry], *_: Any) -> AsyncGenerator[Verdict, None]:
        nonlocal refused
        if entries[0].url.startswith("http://a") and refused < 3:
            refused += 1
            await asyncio.sleep(0.01)
            raise Deferred("no room", RetryLater(seconds, BUSY, 0.0, "answers 503.", 503))
        for entry in entries:
            yield Verdict(entry.url, "A", "allow", "no_match")
            await asyncio.sleep(0.01)

    done: list[int] = []
    work = _asking(ask, done, concurrency=3)
    if fails:
        with pytest.raises(Failed, match="no room"):
            await work.run(batches(iter(recorded), [(0, len(recorded))]))
    else:
        await work.run(batches(iter(recorded), [(0, len(recorded))]))
        assert (sorted(done), refused) == (list(range(len(given))), 3)


@pytest.mark.parametrize(("most", "sites"), [(1, 1), (300_000, 15), (asking.AHEAD_BYTES, 100)])
async def test_sites_are_asked_about_far_ahead_of_their_lines(
    most: int, sites: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "AHEAD_BYTES", most)
    monkeypatch.setattr(batch_parts, "GROUP_BYTES", 100_000)
    urls = [f"http://{site:03}.example/{number}" for site in range(100) for number in range(100)]
    recorded = sorted(record for n, url in enumerate(urls) if (record := record_of(n, url.encode(), _entry)))
    looked: list[str] = []
    asked: list[str] = []
    ahead: list[int] = []

    async def ask(
        _client: Any, entries: Sequence[Entry], _facts: bool, wait: float | None
    ) -> AsyncGenerator[Verdict, None]:
        for entry in entries:
            (asked if wait is None else looked).append(entry.url)
            ahead.append(len(looked) - len(asked) // 100)
            is_missing = wait is not None and "7.example" in entry.url
            yield Verdict(entry.url, "A", *(("defer", "pending") if is_missing else ("allow", "no_match")))
            await asyncio.sleep(0)

    done: list[int] = []
    work = _asking(ask, done, concurrency=2, cached_first=True)
    await work.run(batches(iter(recorded), [(0, len(recorded))]))
    assert sorted(done) == list(range(len(urls)))
    assert sorted(looked) == [url for url in urls if url.endswith("/0")]
    assert set(asked) == {url for url in urls if not url.endswith("/0") or "7.example" in url}
    assert all("7.example" in url for url in asked[-1000:])
    assert work._ahead_size == 0
    assert sites <= max(ahead) <= sites + 20  # two groups are asked about at once


async def test_few_sites_are_asked_about_at_once_however_slow_the_service_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SILENCE", 0.0)
    monkeypatch.setattr(asking, "PATIENCE", 0.0)
    monkeypatch.setattr(asking, "OTHERS", 0)
    monkeypatch.setattr(asking, "LOOK", 0.001)
    given = [f"http://{n:04}.example/" for n in range(3000)]
    recorded = [record for n, url in enumerate(given) if (record := record_of(n, url.encode(), _entry))]
    at_once = most = longest = 0

    async def ask(
        _client: Any, entries: Sequence[Entry], _facts: bool, wait: float | None
    ) -> AsyncGenerator[Verdict, None]:
        nonlocal at_once, most, longest
        looks = wait == 0
        at_once += looks
        most, longest = max(most, at_once), max(longest, looks * len(entries))
        await asyncio.sleep(0.01)  # several looks at what waits
        at_once -= looks
        for entry in entries:
            yield Verdict(entry.url, "A", "defer", "pending") if looks else Verdict(entry.url, "A", "allow", "no_match")

    done: list[int] = []
    work = _asking(ask, done, concurrency=3, cached_first=True)
    await work.run(batches(iter(recorded), [(0, len(recorded))]))
    assert sorted(done) == list(range(len(given)))
    assert (most, longest) == (3, asking.SITES_TOGETHER)


def test_files_with_any_name_can_be_written_as_text(tmp_path: Path) -> None:
    names = [os.fsencode(tmp_path) + name for name in (b"/a", b"/\xff\xc3\xa9")]
    for name in names:
        Path(os.fsdecode(name)).write_bytes(b"1\n2\n")
    sources = Sources(list(map(os.fsdecode, names)))
    places = [sources.place(number) for number, _ in sources.lines(LISTED_LINE_LIMIT)]
    assert places == [
        (f"{tmp_path}/a", 1),
        (f"{tmp_path}/a", 2),
        (f"{tmp_path}/\\udcffé", 1),
        (f"{tmp_path}/\\udcffé", 2),
    ]


@pytest.mark.parametrize("spaces", [0, 5, 100])
def test_the_beginning_of_a_line_that_was_cut_is_not_asked(spaces: int, tmp_path: Path) -> None:
    url = b"http://h/" + b"a" * (URL_LIMIT - 9)
    assert read_url(url) == Entry(url.decode())
    listed = tmp_path / "list"
    listed.write_bytes(b" " * spaces + url + b"a" * 20)
    [(_, written)] = Sources([str(listed)]).lines(LISTED_LINE_LIMIT)
    assert isinstance(written, bytes)
    with pytest.raises(NotAsked, match="is longer than 16384 bytes"):
        read_url(written)


def _reference(command: str) -> str:
    return (ROOT / "docs/reference/cli.md").read_text().partition(f"\n## {command}\n")[2].partition("\n## ")[0]


def _options(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a command, and of those below it."""
    options = {name for action in parser._actions for name in action.option_strings} - {"-h", "--help"}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            options.update(*map(_options, action.choices.values()))
    return options


@pytest.mark.parametrize("command", ["check", "ingest", "overrides", "why"])
def test_every_option_is_in_the_reference(command: str) -> None:
    parser = Parser()
    import_module(f"robots_decisions.cli.{command}").add(parser)
    assert _options(parser) == set(re.findall(r"^\| `(--[a-z-]+)", _reference(command), re.MULTILINE))


def test_every_command_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text()
    assert [name for name in COMMANDS if f"| [`{name}`](#{name}) |" not in page] == []


def test_every_member_of_a_row_is_in_the_reference() -> None:
    page = _reference("check")
    members = rows.COLUMNS.keys() | rows.LOG_COLUMNS.keys()
    named = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", page, re.MULTILINE)
    assert members <= {name for cell in named for name in re.findall(r"`([a-z_]+)`", cell)}
    assert all(f"`{name}`" in page for name in rows.ORIGIN_COLUMNS)


def test_commands_of_client_and_server_have_names_of_their_own() -> None:
    client, server = (
        tomllib.loads((ROOT / name).read_text()) for name in ("clients/python/pyproject.toml", "pyproject.toml")
    )
    assert list(client["project"]["scripts"]) == ["robots-decisions"]
    assert list(server["project"]["scripts"]) == ["robots-decisions-server"]


def test_turns_of_whole_seconds_are_not_blamed() -> None:
    pace = PaceAudit(1.0)
    honest = [int(0.99 + 0.2 * number) for number in range(100)]
    assert [pace.early("http://h", "A", at, 0.2) for at in honest] == [None] * 100
    burst = [pace.early("http://h", "A", 1000, 0.2) for _ in range(10)]
    assert burst.count(None) == 6


def test_turns_of_many_crawlers_take_little_memory() -> None:
    pace = PaceAudit(0.0)
    names = [str(number) for number in range(CRAWLERS + 1)]
    assert {pace.early("http://h", name, 0.0, 60.0) for name in names} == {None}
    assert {pace.early("http://h", name, 1.0, None) for name in ("A", "B")} == {None}
    assert len(pace.saved()["due"]) == CRAWLERS
    assert [pace.early("http://h", name, 2.0, 60.0) for name in (names[-1], names[0])] == [58.0, None]


def test_turns_that_are_over_are_not_saved() -> None:
    pace = PaceAudit(0.0)
    for number in range(1000):
        pace.early("http://h", f"Bot{number}", number, 5.0)
    saved = json.loads(json.dumps(pace.saved()))
    assert list(saved["due"]) == [f"Bot{number}" for number in range(995, 1000)]
    resumed = PaceAudit(0.0)
    resumed.restore(saved)
    following = [(f"Bot{number}", at) for at in (1000.0, 1001.0) for number in range(985, 1000)]
    found = [pace.early("http://h", name, at, 5.0) for name, at in following]
    assert [resumed.early("http://h", name, at, 5.0) for name, at in following] == found
    assert 0 < found.count(None) < len(found)


def test_each_crawler_of_each_origin_has_its_turns() -> None:
    pace = PaceAudit(0.1)
    fetches = [
        ("http://a", "A", 0.0, 5.0, None),
        ("http://a", "B", 1.0, 5.0, None),
        ("http://a", "A", 2.0, 5.0, 3.0),
        ("http://a", "A", 5.0, 5.0, None),
        ("http://a", "A", 6.0, None, None),
        ("http://b", "A", 6.0, 5.0, None),
    ]
    for at, (origin, agent, instant, interval, early) in enumerate(fetches):
        assert pace.early(origin, agent, instant, interval) == early, at
    other = PaceAudit(0.1)
    other.restore(pace.saved())
    assert other.early("http://b", "A", 7.0, 5.0) == 4.0
