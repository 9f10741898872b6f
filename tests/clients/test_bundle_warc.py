"""`robots-decisions bundle --warc`: a file that tools for WARC read, and another service can be given."""

import gzip
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from tests.clients.arrow import make_bundle
from tests.clients.commands import run
from tests.clients.site import Site, new_address
from tests.operator_token import TOKEN_FILE
from tests.origins import serve, text

ROBOTS = "User-agent: *\nDisallow: /private/\n"
LONG = "# " + "x" * 600_000


async def test_bundle_as_warc_is_read_and_ingested(service_url: str, default_pace_url: str, tmp_path: Path) -> None:
    listed, output = tmp_path / "list", tmp_path / "robots.warc.gz"
    async with (
        serve(Site(ROBOTS), host=new_address()) as one,
        serve(text(404), host=new_address()) as gone,
        serve(Site(ROBOTS + LONG), host=new_address()) as long,
    ):
        listed.write_text("\n".join([one.url, gone.url, long.url]))
        made = await make_bundle(str(listed), "--server", service_url, "--output", str(output), "--fetch", "--warc")
    assert made.code == 0, made.err
    found = []
    with output.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            header = record.rec_headers.get_header
            body = record.content_stream().read()
            found.append((record.rec_type, header("WARC-Target-URI"), header("WARC-Truncated"), body[: len(ROBOTS)]))
    robots = ROBOTS.encode()
    assert found[0][0] == "warcinfo"
    assert set(found[1:]) == {
        ("resource", f"{one.url}/robots.txt", None, robots),
        ("metadata", f"{gone.url}/robots.txt", None, b"outcome: 404\r\n"),
        ("resource", f"{long.url}/robots.txt", "length", robots),
    }
    assert len(found) == 4
    assert gzip.decompress(output.read_bytes()).startswith(b"WARC/1.1\r\n")
    # The sites are down now: another service answers by the file alone.
    key = TOKEN_FILE.read_text().strip()
    sent = await run("ingest", str(output), "--server", default_pace_url, ROBOTS_API_KEY=key)
    assert (sent.code, sent.err) == (0, "2 responses for robots.txt: 2 in use\n")
    checked = await run("check", f"{one.url}/private/", "--agent", "ExampleBot", "--server", default_pace_url)
    assert [(row["verdict"], row["rule_line"]) for row in checked.rows()] == [("disallow", 2)]
