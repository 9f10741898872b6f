"""A bundle as a WARC file: what archives keep, and `ingest` reads."""

from collections.abc import Iterator
from datetime import datetime
from io import BytesIO
from typing import Any, BinaryIO

from warcio.warcwriter import WARCWriter

from robots_decisions.cli.instants import rfc3339

_SOFTWARE = "robots-decisions bundle"


def write_warc(rows: Iterator[dict[str, Any]], file: BinaryIO, made_at: datetime) -> None:
    """Write a `resource` record for each file, and a `metadata` record for each fetch that brought none (WARC 1.1, 6).

    They are no `response` records, since the service does not keep the header of a response.
    """
    writer = WARCWriter(file, gzip=True, warc_version="1.1")
    about = {"software": _SOFTWARE, "format": "WARC File Format 1.1", "isPartOf": f"bundle of {made_at.isoformat()}"}
    writer.write_record(writer.create_warcinfo_record(None, about))
    for row in rows:
        body: bytes | None = row["body"]
        fields = {"WARC-Date": rfc3339(row["valid_from"].timestamp())}
        if body is None:
            kind, media_type = "metadata", "application/warc-fields"
            body = f"outcome: {row['outcome']}\r\n".encode()
        else:
            kind, media_type = "resource", "text/plain"
            if row["truncated"]:
                fields["WARC-Truncated"] = "length"
        url = f"{row['origin']}/robots.txt"
        writer.write_record(
            writer.create_warc_record(
                url, kind, BytesIO(body), len(body), warc_content_type=media_type, warc_headers_dict=fields
            )
        )
