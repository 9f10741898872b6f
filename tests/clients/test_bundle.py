"""`robots-decisions bundle`: a row for each origin of a list in a Parquet file, and what has none is named."""

import base64
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from robots_decisions import AsyncClient, BundleRow, Client, ServiceUnavailable, Unanswered
from robots_decisions.bundle_rows import ROWS
from robots_decisions.cli.batches import BATCH_LINES

from tests.clients.arrow import crawlers, in_arrow, make_bundle
from tests.clients.commands import LINES, asked_in, command
from tests.clients.site import Site, new_address
from tests.faults.until import until_so
from tests.origins import Exchange, http_only, serve, text

ROBOTS = "User-agent: *\nDisallow: /private/\n"
ROW: dict[str, Any] = {
    "profile": None,
    "valid_from": "2026-11-21T18:30:00Z",
    "valid_until": "2026-11-22T18:30:00Z",
    "outcome": "200",
    "version": "0123456789abcdef",
    "truncated": False,
    "body": base64.b64encode(ROBOTS.encode()).decode(),
}
READ = """
import json, sys
import pyarrow.parquet as pq
from robots_core.arrow import BUNDLE_SCHEMA, Bundle
file = pq.ParquetFile(sys.stdin.read())
assert file.schema_arrow.equals(BUNDLE_SCHEMA), file.schema_arrow
rows = file.read().to_pylist()
groups = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
metadata = {key.decode(): value.decode() for key, value in file.schema_arrow.metadata.items()}
print(json.dumps([groups, metadata, rows], default=lambda it: it.decode() if isinstance(it, bytes) else it.isoformat()))
"""


async def read(path: Path) -> tuple[list[int], dict[str, str], list[dict[str, Any]]]:
    """The sizes of the row groups of a bundle, its metadata, and its rows."""
    groups, metadata, rows = json.loads(await in_arrow(READ, str(path)))
    return groups, metadata, rows


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_every_origin_has_a_row_and_the_others_are_named(service_url: str, tmp_path: Path) -> None:
    listed, output, missing = (tmp_path / name for name in ("list", "bundle.parquet", "missing"))
    async with (
        serve(Site(ROBOTS), host=new_address()) as one,
        serve(text(404), host=new_address()) as two,
        serve(text(200, ROBOTS), host=new_address()) as three,
        serve(at_once=http_only(text(200, ROBOTS)), host=new_address()) as bare,
    ):
        host = bare.url.removeprefix("http://")
        lines = [f"{one.url}/a", f"{two.url}/", f"{one.url}/b?c", "# comment", host, "gopher://x/", one.url.upper()]
        listed.write_text("\n".join(lines))
        arguments = (str(listed), "--server", service_url, "--output", str(output), "--missing", str(missing))
        fetched = await make_bundle(*arguments, "--fetch")
        groups, metadata, rows = await read(output)
        assert missing.read_text() == ""
        listed.write_text("\n".join([lines[0], three.url]))
        known = await make_bundle(*arguments)
        assert three.requests == []
    assert fetched.code == 3
    line, summary = fetched.err.splitlines()
    assert line == "line 6: 'gopher://x' has the scheme 'gopher'; use http or https."
    assert summary == "4 origins: 2 with a file (2 200), 1 without a file (1 404), 1 unreadable"
    assert groups == [3]
    assert metadata.keys() == {"robots_core.made_at", "robots_core.bundle"}
    assert [row["origin"] for row in rows] == sorted([one.url, two.url, bare.url])
    [row] = [row for row in rows if row["origin"] == one.url]
    assert (row["outcome"], row["body"], row["truncated"], row["profile"]) == ("200", ROBOTS, False, None)
    assert row["version"] == hashlib.sha256(ROBOTS.encode()).hexdigest()[:16]
    assert row["valid_from"] < metadata["robots_core.made_at"] < row["valid_until"]
    assert (known.code, known.err) == (3, "2 origins: 1 with a file (1 200), 1 missing\n")
    assert missing.read_text() == f"{three.url}\n"
    assert [row["origin"] for row in (await read(output))[2]] == [one.url]
    assert names_in(tmp_path) == ["bundle.parquet", "list", "missing"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--as-of", "noon"), "--as-of: 'noon' is not an RFC 3339 instant"),
        (("--as-of", "2026-11-21T18:30:00Z", "--fetch"), "--as-of and --fetch exclude each other"),
        (("--profile", "acme"), "Unknown profile 'acme'. Choose one of: default."),
        (("--output", "/nowhere/bundle"), "--output: /nowhere is not a directory."),
        (("--output", "."), "--output: . is a directory. Name a file."),
        (("--output", "bundle", "--missing", "/"), "--missing: / is a directory. Name a file."),
        (("--output", "bundle", "--missing", "/nowhere/missing"), "--missing: /nowhere is not a directory."),
        (("--output", "bundle", "--missing", "./bundle"), "--missing: ./bundle is also --output. Choose another file."),
    ],
)
async def test_errors_say_what_to_do(
    service_url: str, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    output = str(tmp_path / "bundle")
    ended = await make_bundle("http://127.0.0.1:9/", "--server", service_url, "--output", output, *arguments)
    assert ended.code == 3
    assert complaint in ended.err


async def test_only_a_regular_file_is_replaced(service_url: str, tmp_path: Path) -> None:
    """As root, a bundle for /dev/null would take the place of the device."""
    device = tmp_path / "device"
    os.mkfifo(device)
    ended = await make_bundle("http://127.0.0.1:9/", "--server", service_url, "--output", str(device))
    assert ended.code == 3
    assert f"--output: {device} is not a regular file, and a bundle replaces its file. Name another one." in ended.err
    assert device.is_fifo()


@pytest.mark.parametrize("suffix", [".new", ".unfinished"])
async def test_no_symbolic_link_is_followed_to_another_file(service_url: str, tmp_path: Path, suffix: str) -> None:
    """Others may write to the directory, such as /tmp."""
    output, other = tmp_path / "bundle", tmp_path / "other"
    other.write_text("precious")
    output.with_name(f"bundle{suffix}").symlink_to(other)
    async with serve(text(404), host=new_address()) as origin:
        ended = await make_bundle(origin.url, "--server", service_url, "--fetch", "--output", str(output))
    assert ended.code == 0, ended.err
    assert other.read_text() == "precious"
    assert names_in(tmp_path) == ["bundle", "other"]
    assert not output.is_symlink()


async def test_an_interrupted_bundle_follows_no_symbolic_link(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "bundle.unfinished"
    other.write_bytes(b"precious")
    link.symlink_to(other)
    script = (
        "import pathlib, sys; from robots_decisions.cli.bundle_file import Spool; "
        "Spool(pathlib.Path(sys.stdin.read())).open(3)"
    )
    with pytest.raises(AssertionError, match=r"Cannot open .*\.unfinished: "):
        await in_arrow(script, str(link))
    assert other.read_bytes() == b"precious"


async def test_a_bundle_needs_pyarrow(tmp_path: Path) -> None:
    arguments = ("bundle", "http://h/", "--output", str(tmp_path / "bundle"))
    async with command(*arguments) as running:  # in the environment of the tests, which has none
        ended = await running.ended()
    assert (ended.code, ended.err) == (
        3,
        "robots-decisions bundle needs pyarrow: install robots-decisions[cli,parquet].\n",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_interrupted_bundle_resumes(number: int, tmp_path: Path) -> None:
    listed, output, state = (tmp_path / name for name in ("list", "bundle", "state"))
    unfinished = tmp_path / "bundle.unfinished"
    origins = [f"https://h{at:05}.example" for at in range(3 * BATCH_LINES)]
    listed.write_text("\n".join(origins))
    arguments = (str(listed), "--output", str(output), "--state", str(state), "--concurrency", "1")

    answered = 0

    async def handle(exchange: Exchange) -> None:
        nonlocal answered
        items = await asked_in(exchange)
        assert len(items) <= ROWS
        if answered == BATCH_LINES + ROWS and stalls:
            await exchange.stall()
            return
        answered += len(items)
        body = "".join(json.dumps({**ROW, "origin": item["url"]}) + "\n" for item in items)
        await exchange.send(text(200, body, LINES))

    stalls = True
    async with serve(handle) as server:
        async with command("bundle", *arguments, "--server", server.url, python=crawlers()) as running:
            await until_so(lambda: answered == BATCH_LINES + ROWS and state.read_bytes().count(b"\n") == 2)
            running.interrupt(number)
            ended = await running.ended()
        assert not output.exists()
        assert unfinished.read_bytes().count(b"\n") >= BATCH_LINES
        if number == signal.SIGINT:
            assert ended.code == 130
            assert ended.err.endswith(f"Run the same command with --state {state} to resume.\n")
        stalls, before = False, answered
        resumed = await make_bundle(*arguments, "--server", server.url)
        assert answered - before == 2 * BATCH_LINES
    count = len(origins)
    assert (resumed.code, resumed.err) == (0, f"{count} origins: {count} with a file ({count} 200)\n")
    groups, _, rows = await read(output)
    assert groups == [count]
    assert [row["origin"] for row in rows] == origins
    assert not unfinished.exists()
    again = await make_bundle(*arguments, "--server", server.url)
    assert again.code == 3
    assert "To write the bundle again, choose another state file." in again.err


async def test_rows_of_the_client(service_url: str) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin, AsyncClient(service_url) as client:
        urls = [f"http://user:secret@{origin.url[7:]}/private/#x", "nonsense", "http://127.9.9.9:9/"]
        known = [it async for it in client.bundle(urls)]
        fetched = [it async for it in client.bundle(urls, fetch=True)]
    assert [type(it) for it in known] == [Unanswered] * 3
    assert [it.status for it in known if isinstance(it, Unanswered)] == [404, 422, 404]
    row, wrong, refused = fetched
    assert isinstance(row, BundleRow)
    assert (row.url, row.key, row.outcome, row.body) == (urls[0], origin.url, "200", ROBOTS.encode())
    assert isinstance(wrong, Unanswered)
    assert isinstance(refused, BundleRow)
    assert (refused.outcome, refused.body, refused.version) == ("connection", None, None)
    with Client(service_url) as blocking:
        [same] = blocking.bundle([origin.url])
    assert same == BundleRow(**{**vars(row), "url": origin.url})


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *(("origin", value) for value in (None, "h", "https://h\n", "https://h\t", 7)),
        *(("profile", value) for value in ("", "a b", 7)),
        *(("valid_from", value) for value in (None, "noon", 7)),
        *(("outcome", value) for value in (None, 200, "")),
        *(("version", value) for value in (7, "x")),
        *(("truncated", value) for value in (None, 1)),
        *(("body", value) for value in (7, "%", "YQ")),
    ],
)
async def test_what_is_no_row_is_refused(member: str, value: object) -> None:
    async def handle(exchange: Exchange) -> None:
        await asked_in(exchange)
        row = {**ROW, "origin": "https://h", member: value}
        await exchange.send(text(200, json.dumps(row) + "\n", LINES))

    async with serve(handle) as server, AsyncClient(server.url) as client:
        with pytest.raises(ServiceUnavailable, match="a row for 'https://h' that is not one of a bundle"):
            _ = [it async for it in client.bundle(["https://h"])]
