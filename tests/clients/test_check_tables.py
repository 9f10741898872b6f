"""`robots-decisions check` of tables, and of lists at a URL."""

import gzip
import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.clients.arrow import crawlers, in_arrow
from tests.clients.commands import Ended, run
from tests.clients.site import Site, new_address
from tests.origins import Exchange, LoopbackOrigin, head, serve

ROBOTS = "User-agent: *\nDisallow: /private/\n"
AGENT = ("--agent", "ExampleBot")

WRITE = """
import json, sys
import pyarrow as pa, pyarrow.parquet as pq
path, columns, types = json.load(sys.stdin)
table = pa.table({name: pa.array(values, getattr(pa, types.get(name, "string"))()) for name, values in columns.items()})
pq.write_table(table, path, row_group_size=2)
"""


def verdicts(ended: Ended) -> list[tuple[int, str | None, str | None]]:
    """The line, the path and the verdict of each row, or its reason without one."""
    rows = sorted(ended.rows(), key=lambda row: row["line"])
    return [
        (row["line"], row["url"] and "/" + row["url"].split("/", 3)[3], row["verdict"] or row["reason"]) for row in rows
    ]


EXPECTED = [(2, "/1", "allow"), (3, "/private/2", "disallow")]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('id,url\n1,"{site}/1"\n2,{site}/private/2\n', EXPECTED),
        ("\ufeffurl\tid\n{site}/1\t1\n{site}/private/2\t2\n", EXPECTED),
        (" CDX N b a m\nx)/1 20260101000000 {site}/1 -\nx)/2 20260101000000 {site}/private/2 -\n", EXPECTED),
        ("x)/1 20260101000000 {site}/1 text/html\n\nx)/2 2026 {site}/private/2 warc/revisit\n", None),
        ('x)/1 20260101000000 {{"url": "{site}/1"}}\n\nx)/2 20260102 {{"url": "{site}/private/2"}}\n', None),
        ('{{"url": "{site}/1", "url2": "x"}}\n\n {{"url": "{site}/private/2"}}\n', None),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
async def test_column_of_text_is_read(
    table: str, expected: list[object] | None, compressed: bool, service_url: str
) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        given = table.format(site=origin.url).encode()
        given = gzip.compress(given) if compressed else given
        ended = await run("check", "-", "--column", "url", *AGENT, "--server", service_url, given=given)
    assert verdicts(ended) == (expected or [(1, "/1", "allow"), (3, "/private/2", "disallow")])
    assert ended.code == 1


async def test_lines_without_the_column_are_named(service_url: str) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        lines = ['{"url": 1}', f'{{"url": "{origin.url}/1"}}', "[" * 5000, '{"url": "http://a/\\nb"}', "{}"]
        ended = await run(
            "check", "-", "--column", "url", *AGENT, "--server", service_url, given="\n".join(lines).encode()
        )
        other = await run(
            "check", "-", "--column", "url", *AGENT, "--server", service_url, given=b"id,URL\n1,http://a/\n"
        )
    assert [(line, verdict) for line, _, verdict in verdicts(ended)] == [
        (1, "unreadable"),
        (2, "allow"),
        (3, "unreadable"),
        (4, "unreadable"),
        (5, "unreadable"),
    ]
    assert "line 1: The line has no text 'url'." in ended.err
    assert "line 4: 'http://a/\\nb' has a line break." in ended.err
    assert (other.code, other.err) == (
        3,
        "robots-decisions: -: The first line has no column 'url', but 'id', 'URL'.\n",
    )


async def write_parquet(path: Path, columns: dict[str, object], **types: str) -> None:
    await in_arrow(WRITE, json.dumps([str(path), columns, types]))


async def test_column_of_parquet_is_read(service_url: str, tmp_path: Path) -> None:
    path, several = tmp_path / "pages.parquet", tmp_path / "several.parquet"
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        urls = [f"{origin.url}/1", None, f"{origin.url}/private/2", "a\nb", ""]
        await write_parquet(path, {"id": [1, 2, 3, 4, 5], "url": urls}, id="int64", url="large_string")
        await write_parquet(several, {"page": urls[:1]})
        arguments = (*AGENT, "--server", service_url)
        ended = await run("check", str(path), *arguments, python=crawlers())
        named = await run("check", str(several), "--column", "page", *arguments, python=crawlers())
        unnamed = await run("check", str(several), *arguments, python=crawlers())
        number = await run("check", str(path), "--column", "id", *arguments, python=crawlers())
        pipe = await run("check", "-", *arguments, given=path.read_bytes(), python=crawlers())
        path.write_bytes(path.read_bytes()[:-20])
        damaged = await run("check", str(path), *arguments, python=crawlers())
        log = await run("check", str(several), "--log", *arguments, python=crawlers())
    assert [(row["line"], row["verdict"]) for row in sorted(ended.rows(), key=lambda row: row["line"])] == [
        (1, "allow"),
        (3, "disallow"),
        (4, None),
    ]
    assert [row["verdict"] for row in named.rows()] == ["allow"]
    assert {it.code for it in (unnamed, number, pipe, damaged, log)} == {3}
    assert "has no column 'url', but 'page'. Name one with --column." in unnamed.err
    assert "is of int64, not text" in number.err
    assert "cannot be read from a pipe" in pipe.err
    assert f"Cannot read {path}: " in damaged.err
    assert "A Parquet file is no log." in log.err


def storing(files: dict[str, bytes]) -> AbstractAsyncContextManager[LoopbackOrigin]:
    """An object store with these files: HEAD, and GET of a range, over HTTP."""

    async def answer(exchange: Exchange) -> None:
        found = files.get(unquote(exchange.path.partition("?")[0]))
        method = exchange.head.partition(b" ")[0]
        if found is None:
            await exchange.send(head(404, {"Content-Length": "0", "Connection": "close"}))
            return
        fields = {"Accept-Ranges": "bytes", "ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 18:30:00 GMT"}
        asked = next((line for line in exchange.head.split(b"\r\n") if line.lower().startswith(b"range: bytes=")), b"")
        status, part = 200, found
        if asked:
            first, last = asked.partition(b"=")[2].split(b"-")
            part = found[int(first) : int(last) + 1]
            status = 206
            fields["Content-Range"] = f"bytes {int(first)}-{int(first) + len(part) - 1}/{len(found)}"
        fields |= {"Content-Length": str(len(part)), "Connection": "close"}
        await exchange.send(head(status, fields) + (b"" if method == b"HEAD" else part))

    return serve(answer)


async def test_list_at_a_url_is_read(service_url: str, tmp_path: Path) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        given = "".join(f"{origin.url}/{number}\n" for number in range(2000)).encode()
        async with storing({"/lists/a.txt": given, "/lists/a.txt.gz": gzip.compress(given)}) as store:
            for name in (f"@{store.url}/lists/a.txt", f"@{store.url}/lists/a.txt.gz", "s3://lists/a.txt.gz"):
                ended = await run(
                    "check",
                    name,
                    *AGENT,
                    "--server",
                    service_url,
                    AWS_ENDPOINT_URL=store.url,
                    AWS_ACCESS_KEY_ID="id",
                    AWS_SECRET_ACCESS_KEY="secret",
                    AWS_DEFAULT_REGION="us-east-1",
                )
                assert (ended.code, ended.err) == (0, "2000 lines: 2000 allow (2000 no_match)\n"), name
            gone = await run("check", f"@{store.url.replace('//', '//me:secret@')}/lists/b", *AGENT)
            whole = await run("check", f"{store.url}/lists/a.txt", *AGENT, "--server", service_url)
    assert gone.code == 3
    assert f"{store.url}/lists/b: It cannot be read (FileNotFoundError" in gone.err
    assert "secret" not in gone.err
    assert [row["url"] for row in whole.rows()] == [f"{store.url}/lists/a.txt"]


async def test_scheme_that_nobody_knows_is_an_error() -> None:
    ended = await run("check", "gopherfs://x/list", *AGENT)
    assert (ended.code, "gopherfs://x/list: It cannot be read (ValueError: Protocol not known" in ended.err) == (
        3,
        True,
    )
