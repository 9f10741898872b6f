"""Odd responses, and what curl, requests, aiohttp and httpx read of each: `python -m tests.fetch.odd_responses` asks.

It writes tests/cases/odd-responses.jsonl. A row that two or more of them read and the fetch does not needs a reason in
WHY. Every response ends with the connection.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import brotli

from app.cache.compression import zstd
from tests.origins import serve

CASES = Path(__file__).parents[1] / "cases" / "odd-responses.jsonl"
ROBOTS = b"User-agent: *\nDisallow: /private\n"
PAGE = b"<!doctype html><title>Sign in</title>"
SECONDS = 10


def response(
    body: bytes = ROBOTS, fields: bytes = b"", *, status: bytes = b"HTTP/1.1 200 OK", length: bytes | None = None
) -> bytes:
    """A response with these lines of fields, and a Content-Length unless `length` is b""."""
    size = b"%d" % len(body) if length is None else length
    sized = b"Content-Length: %b\r\n" % size if size else b""
    return b"%b\r\nContent-Type: text/plain\r\n%b%b\r\n%b" % (status, fields, sized, body)


def coded(coding: bytes, body: bytes) -> bytes:
    return response(body, b"Content-Encoding: %b\r\n" % coding)


def chunked(first: bytes = b"21\r\n", *, end: bytes = b"0\r\n\r\n", fields: bytes = b"") -> bytes:
    return response(first + ROBOTS + b"\r\n" + end, b"Transfer-Encoding: chunked\r\n" + fields, length=b"")


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
    "br": brotli.compress,
}
NO_CODINGS = [
    "none",
    "utf-8",
    "UTF-8",
    "text/plain",
    "binary",
    "8bit",
    "7bit",
    "null",
    "aws-chunked",
    "identity",
    "plain",
]
NO_CODINGS += ["iso-8859-1", "text", "chunked", "*", "false", "undefined", "gzip;q=1", "default", "base64", ""]
SIZES = ["21 ", "21\t", "21  \t", "0021", "21;a=b", "21 ;a=b", "21; a=b", "21 ; a = b", "21;", "21;a", '21;a="b;c"']
SIZES += ["21;a=b;c=d", "000000000000021", "0x21", "-21", "+21", "21,", "", "2 1", "g", "99999999999999999999"]
FIELDS = [
    "X-A : b",
    "X-A\t: b",
    "X A: b",
    '"X": a',
    "X(a): b",
    ": b",
    "no colon",
    "X@A: b",
    "X-A: b\x01c",
    "X-A: b\x7f",
]
FIELDS += [
    "X-A: a\r\n b",
    "X/A: b",
    "X-A:",
    "X-A: Ölé",
    "X=A: b",
    "{x}: y",
    "<b>: y",
    "X-A: a\rb",
    "X-\x01: b",
    " X: a",
]
FIELDS += ["Content-Length : 33", "Content-Encoding : none", "X-A: b\x00c", "Connection: keep-alive", "Upgrade: h2c"]
FIELDS += ["Transfer-Encoding: identity", "Set-Cookie: a=b", "HTTP/1.1 200 OK", "-: b", "X-A: " + "a" * 65_000]
LINES = ["HTTP/2.0 200 OK", "HTTP/2 200 OK", "HTTP/1.2 200 OK", "HTTP/1.0 200 OK", "http/1.1 200 OK", "ICY 200 OK"]
LINES += [
    "HTTP/1.1 200",
    "HTTP/1.1 200 ",
    "HTTP/1.1  200 OK",
    "HTTP/1.1 200 Très bien",
    "HTTP/1.1 0200 OK",
    "HTTP/1.1 20 OK",
]
LINES += [f"HTTP/1.1 {status} X" for status in (201, 202, 203, 205, 206, 226, 299, 300, 304, 400, 404, 500, 600, 999)]
LENGTHS = [
    "20",
    "99",
    "abc",
    "-1",
    "+33",
    " 33",
    "33 ",
    "033",
    "33, 33",
    "33,30",
    "0x21",
    "33.0",
    "33;",
    "99999999999999999999",
]
BODIES: dict[str, bytes] = {
    "a BOM": b"\xef\xbb\xbf" + ROBOTS,
    "UTF-16LE with a BOM": b"\xff\xfe" + ROBOTS.decode().encode("utf-16-le"),
    "UTF-16BE with a BOM": b"\xfe\xff" + ROBOTS.decode().encode("utf-16-be"),
    "CR line ends": ROBOTS.replace(b"\n", b"\r"),
    "Latin-1": b"# \xe9\n" + ROBOTS,
    "a NUL": b"# \0\n" + ROBOTS,
    "nothing": b"",
    "HTML": PAGE,
    "HTML around rules": b"<pre>\n" + ROBOTS + b"</pre>",
    "blank lines first": b"\r\n\r\n" + ROBOTS,
}


def rows() -> Iterator[tuple[str, bytes]]:
    """Each case by its name, with the bytes of the response."""
    yield "plain", response()
    for word in NO_CODINGS:
        yield f"Content-Encoding: {word}", coded(word.encode(), ROBOTS)
        yield f"Content-Encoding: {word}, a gzip body", coded(word.encode(), gzip.compress(ROBOTS))
    for word, coder in CODERS.items():
        yield f"{word}", coded(word.encode(), coder(ROBOTS))
        yield f"{word}, nothing", coded(word.encode(), b"")
        yield f"{word}, a plain body", coded(word.encode(), ROBOTS)
        yield f"{word}, cut short", coded(word.encode(), coder(ROBOTS)[:-3])
        yield f"{word}, something behind it", coded(word.encode(), coder(ROBOTS) + b"\0\0\0")
        yield f"{word}, in two parts", coded(word.encode(), coder(ROBOTS[:14]) + coder(ROBOTS[14:]))
    yield "deflate without its header", coded(b"deflate", raw_deflate(ROBOTS))
    yield "gzip twice", coded(b"gzip, gzip", gzip.compress(gzip.compress(ROBOTS)))
    yield "gzip twice in one field", coded(b"gzip", gzip.compress(gzip.compress(ROBOTS)))
    yield "gzip once in two fields", response(gzip.compress(ROBOTS), b"Content-Encoding: gzip\r\n" * 2)
    yield "gzip with a wrong checksum", coded(b"gzip", gzip.compress(ROBOTS)[:-8] + b"\0" * 8)
    yield "gzip without a field", response(gzip.compress(ROBOTS))
    yield "compress", coded(b"compress", ROBOTS)
    yield "compress, nothing", coded(b"compress", b"")
    for size in SIZES:
        yield f"a chunk size {size!r}", chunked(size.encode() + b"\r\n")
    yield "a chunk size that ends with LF", chunked(b"21\n")
    yield "blanks behind the last size", chunked(end=b"0 \r\n\r\n")
    yield "no last chunk", chunked(end=b"")
    yield "no line end behind the last chunk", chunked(end=b"0\r\n")
    yield "a trailer", chunked(end=b"0\r\nX-Sum: a\r\n\r\n")
    yield (
        "a chunk and more",
        response(b"20\r\n" + ROBOTS + b"\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n", length=b""),
    )
    yield "chunks beside a length", chunked(fields=b"Content-Length: 33\r\n")
    for fields in ("chunked", "identity", "Chunked", "gzip", "x"):
        yield f"chunked, then {fields}", chunked(fields=f"Transfer-Encoding: {fields}\r\n".encode())
    for coding in ("chunked, chunked", "identity, chunked", "CHUNKED", " chunked", "chunked;q=1", "gzip, chunked"):
        body = b"21\r\n" + ROBOTS + b"\r\n0\r\n\r\n"
        yield f"Transfer-Encoding: {coding}", response(body, f"Transfer-Encoding: {coding}\r\n".encode(), length=b"")
    yield "Transfer-Encoding: identity, until the end", response(fields=b"Transfer-Encoding: identity\r\n", length=b"")
    for line in FIELDS:
        yield f"a field {line[:40]!r}", response(fields=line.encode("latin-1") + b"\r\n")
    for line in LINES:
        yield f"a status line {line!r}", response(status=line.encode())
    for length in LENGTHS:
        yield f"a length {length!r}", response(length=length.encode())
    yield "two equal lengths", response(fields=b"Content-Length: 33\r\n")
    yield "two lengths", response(fields=b"Content-Length: 30\r\n")
    yield "no length", response(length=b"")
    for name, body in BODIES.items():
        yield f"a body with {name}", response(body)
    for interim in (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"):
        yield f"{interim[:12].decode()} first", interim + response()
    yield "lines that end with LF", response().replace(b"\r\n", b"\n")
    yield "an empty line first", b"\r\n" + response()
    yield "a second response", response() + response(PAGE)
    yield "no head", ROBOTS
    yield "half a head", response()[:40]
    yield "nothing at all", b""


_BREAKS_OFF = "A file that breaks off may lack the rule that closes a page."
_NO_FILE = "The status says that the body is not the file."
_NO_LENGTH = "Clients disagree where the body ends."
_NOT_ASKED = "A transfer coding that was not requested."

WHY = {
    "gzip twice": "Two codings: a few bytes could cause any amount of work without output.",
    "compress": "The bytes are not the file, if the field is right.",
    "a status line 'HTTP/1.1 206 X'": "A part of a file is not the file (spec A7).",
    **{f"a status line 'HTTP/1.1 {status} X'": _NO_FILE for status in (300, 400, 404, 500, 600, 999)},
    "a status line 'HTTP/1.1  200 OK'": "No status line of HTTP (RFC 9112 4).",
    "a field 'X-A: a\\rb'": "A CR alone ends a line for some and not for others (RFC 9112 2.2).",
    **{f"{coding}, cut short": _BREAKS_OFF for coding in ("gzip", "x-gzip", "GZIP", "deflate")},
    **{f"a length {length!r}": _NO_LENGTH for length in ("+33", "33.0", "33;")},
    **{f"chunked, then {coding}": _NOT_ASKED for coding in ("gzip", "x")},
    **{f"Transfer-Encoding: {coding}": _NOT_ASKED for coding in ("gzip, chunked", "chunked;q=1")},
}
"""Why the fetch does not read what two or more other clients do."""


def read(content: bytes) -> str:
    """What a body is: the rules, nothing, or other bytes."""
    text = content.decode("utf-16") if content[:2] in (b"\xff\xfe", b"\xfe\xff") else content.decode("latin-1")
    return "rules" if "Disallow: /private" in text else "other" if content else "empty"


async def curl(url: str) -> str:
    command = ["curl", "--silent", "--compressed", "--max-time", str(SECONDS), url]
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await running.communicate()
    return read(output) if running.returncode == 0 else "error"


async def by_requests(url: str) -> str:
    import requests

    def get() -> str:
        try:
            return read(requests.get(url, timeout=SECONDS).content)
        except (requests.RequestException, ValueError):
            return "error"

    return await asyncio.to_thread(get)


async def by_aiohttp(url: str) -> str:
    import aiohttp

    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(SECONDS)) as session, session.get(url) as answer:
            return read(await answer.read())
    except (aiohttp.ClientError, ValueError, TimeoutError):
        return "error"


async def by_httpx(url: str) -> str:
    import httpx

    try:
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            return read((await client.get(url)).content)
    except (httpx.HTTPError, ValueError):
        return "error"


CLIENTS = {"curl": curl, "requests": by_requests, "aiohttp": by_aiohttp, "httpx": by_httpx}


async def main() -> None:
    written = []
    for name, sent in rows():
        found = {}
        for client, ask in CLIENTS.items():
            async with serve(sent) as origin:
                found[client] = await asyncio.wait_for(ask(f"{origin.url}/robots.txt"), 3 * SECONDS)
        written.append(json.dumps({"case": name, **found}, ensure_ascii=False))
    CASES.write_text("\n".join(written) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
