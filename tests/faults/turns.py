"""How long one request keeps the event loop from others: `python -m tests.faults.turns` prints the worst of each route.

While a service answers the worst request that is known for a route, `/healthz` is asked on another connection, again
and again. Whoever asks works meanwhile, one unit after the other: how many units it does before an answer comes says
how many turns it missed, on a machine of any speed, and beside whatever else this one does.
"""

import hashlib
import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from app.origin import URL_LIMIT
from tests.bench.adversaries import Adversary, adversaries
from tests.faults.process import process

LIMIT = 512_000
UNIT = bytes(512 * 1024)
IDLE_TURNS = 300
PATIENCE = 120.0

_JSON = {"Content-Type": "application/json"}


class Asked(NamedTuple):
    """A request, and how many bytes of its answer are read before its client leaves."""

    method: str
    path: str
    body: bytes | None = None
    read: int = 64 * 1024 * 1024


class Turns(NamedTuple):
    """Units of work, and seconds, while one turn was waited for, at worst; and turns in all."""

    worst: int
    seconds: float
    number: int


class Watch:
    """Asks for /healthz on a connection of its own."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def turns(self, over: Callable[[], bool]) -> Turns:
        """Ask until it is over."""
        worst = count = 0
        slowest = 0.0
        while not over():
            begun = time.monotonic()
            self._socket.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            units = 0
            while not select.select([self._socket], [], [], 0)[0]:
                hashlib.sha256(UNIT).digest()
                units += 1
            self._read_answer()
            worst, count, slowest = max(worst, units), count + 1, max(slowest, time.monotonic() - begun)
        return Turns(worst, slowest, count)

    def _read_answer(self) -> None:
        answer = b""
        while not answer.endswith(b"}"):
            piece = self._socket.recv(65_536)
            assert piece, "the service closed the connection"
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200")

    def close(self) -> None:
        """Leave."""
        self._socket.close()


class Service:
    """A service as a process of its own, and whoever watches it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "", parts.port or 0
        self.idle = self._turns(_after(IDLE_TURNS))

    def ask(self, asked: Asked) -> int:
        """The status of the answer."""
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE)
        try:
            connection.request(asked.method, asked.path, asked.body, _JSON if asked.body else {})
            answer = connection.getresponse()
            left = asked.read
            while left > 0 and (piece := answer.read(min(65_536, left))):
                left -= len(piece)
            return answer.status
        finally:
            connection.close()

    def turns_during(self, asked: Asked) -> tuple[Turns, int]:
        """The turns that others have while it is answered, and the status of the answer."""
        said: list[int] = []
        asking = threading.Thread(target=lambda: said.append(self.ask(asked)), daemon=True)
        asking.start()
        turns = self._turns(lambda: not asking.is_alive())
        [status] = said
        return turns, status

    def _turns(self, over: Callable[[], bool]) -> Turns:
        with closing(Watch(*self._address)) as watch:
            return watch.turns(over)


@contextmanager
def running() -> Iterator[Service]:
    """A service, until the block ends."""
    with process(ACCESS_LOG="false") as one:
        yield Service(one.listens())


@contextmanager
def site(file: bytes) -> Iterator["Site"]:
    """An origin on loopback whose robots.txt this is."""
    held = Site(file)
    thread = threading.Thread(target=held.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        held.server.shutdown()
        held.server.server_close()
        thread.join()


class Site:
    """What an origin serves, which may change."""

    def __init__(self, file: bytes) -> None:
        self.file = file
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(site.file)))
                self.end_headers()
                self.wfile.write(site.file)

            def log_message(self, format: str, *_args: object) -> None:  # noqa: A002 - as http.server has it
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def _after(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is None


GLOBS = ("v2: 15,000 sets", "v2: 30 globs of sets", "v2: 15,000 globs that backtrack")
"""The patterns of version 2.0 that `make bench-hostile` finds slowest to match."""

FILES = {
    **dict(zip(("sets", "stars", "backtracking"), GLOBS, strict=True)),
    "names": "rfc9309: 34,000 agents",
    "groups": "24,000 groups of one agent",
    "keys": "rfc9309: 64,000 lines without a colon",
    "rates": "as many as fit of Request-rate:1/{}",
    "pages": "google: index pages",
}
"""Files of `tests.bench.adversaries` that are slow to read, to check or to compare."""


def _hostile() -> dict[str, Adversary]:
    by_name = {one.name: one for one in adversaries() if one.name in FILES.values()}
    return {short: by_name[name] for short, name in FILES.items()}


def lines(line: str) -> bytes:
    """A group of as many of these lines as fit; `{}` is the number of each."""
    text = ["User-agent: *\n"]
    size, number = len(text[0]), 0
    while size < LIMIT - 100:
        text.append(line.format(number) + "\n")
        size += len(text[-1])
        number += 1
    return "".join(text).encode()


AGENTS = b"".join(b"user-agent:%04x\n" % number for number in range(31_000)) + b"disallow:/x\n"
CONTROLS = b"user-agent: " + b"\x01" * 16_000 + b"\n"
LONG_AGENTS = ["a " + "b" * 2045 + chr(97 + number) for number in range(16)]
MEMBERS = b"{" + b",".join(b'"k%d":1' % number for number in range(340_000)) + b"}"
TOKENS = b'{"items":[' + b",".join([b"{}"] * 21_000) + b"]}"


def _get(route: str, **query: object) -> Asked:
    return Asked("GET", f"{route}?{urlencode(query, doseq=True)}")


def _post(route: str, members: Mapping[str, object], **others: Any) -> Asked:
    return Asked("POST", route, json.dumps(members).encode(), **others)


def worst_requests(urls: Mapping[str, str]) -> dict[str, list[Asked]]:
    """By route, the requests that were found to keep the loop longest; `urls` are of origins with hostile files."""
    hostile = _hostile()
    globs = ("sets", "stars", "backtracking")
    slow = [(urls[name] + hostile[name].path)[:URL_LIMIT] for name in globs]
    posts = ("/v1/allowed", "/v1/permits", "/v1/test", "/v1/indexing")
    large = {route: [Asked("POST", route, body) for body in (MEMBERS, TOKENS)] for route in posts}
    items = [{"url": urls["agents"] + f"/{number}", "agent": "a"} for number in range(400)]
    trial = {"urls": [f"http://h/{number}" for number in range(10_000)], "agents": ["0000"]}
    return {
        "GET /v1/allowed": [
            _get("/v1/allowed", url=urls["agents"], agent=LONG_AGENTS),
            *(_get("/v1/allowed", url=url, agent="x", dialect="v2") for url in slow),
            *(_get("/v1/allowed", url=url, agent="x", dialect="v2", explain="true") for url in slow),
            *(_get("/v1/allowed", url=urls[name], agent="x") for name in ("delays", "names", "groups", "rates")),
        ],
        "POST /v1/allowed": [
            *large["/v1/allowed"],
            _post("/v1/allowed", {"items": [{"url": urls["agents"], "agent": LONG_AGENTS}] * 100}),
            _post("/v1/allowed", {"items": items}),
            *(_post("/v1/allowed", {"items": [{"url": url, "agent": "x", "dialect": "v2"}] * 50}) for url in slow),
        ],
        "POST /v1/permits": [
            *large["/v1/permits"],
            _post("/v1/permits", {"items": [{**item, "max_wait": 0} for item in items]}),
        ],
        "POST /v1/test": [
            *large["/v1/test"],
            _post("/v1/test", {"robots": AGENTS.decode(), **trial}),
            _post("/v1/test", {"robots": AGENTS.decode(), **trial, "explain": True}),
            *(
                _post(
                    "/v1/test",
                    {
                        "robots": hostile[name].body.decode(),
                        "urls": ["http://h" + hostile[name].path] * 100,
                        "agents": ["x"],
                        "dialects": ["v2"],
                    },
                    read=1_000_000,
                )
                for name in globs
            ),
        ],
        "POST /v1/indexing": [
            *large["/v1/indexing"],
            *(_post("/v1/indexing", {"agents": ["a"], "html": tag * (2**20 // len(tag))}) for tag in ("<a>", "<p><b>")),
            _post("/v1/indexing", {"agents": ["a"], "html": "<a" + " b=c" * 250_000}),
        ],
        "GET /v1/robots": [_get("/v1/robots", url=urls[name], agent="x") for name in CHECKED],
        "GET /v1/robots/history": [_get("/v1/robots/history", url=urls["sets"])],
        "GET /v1/robots/diff": [
            *(_get("/v1/robots/diff", url=urls[name], dialect="v2") for name in globs),
            *(_get("/v1/robots/diff", url=urls[name]) for name in ("delays", "names", "groups")),
            _get("/v1/robots/diff", url=urls["pages"], dialect="google"),
        ],
    }


CHECKED = ("delays", "usages", "agents", "names", "groups", "keys", "rates")
"""Files whose warnings take long."""


@contextmanager
def sites() -> Iterator[Mapping[str, Site]]:
    """Origins with files that were made to be slow."""
    files = {
        **{name: one.body for name, one in _hostile().items()},
        "agents": CONTROLS * 30 + b"user-agent: a\ndisallow: /x\n",
        "delays": lines("Crawl-delay: {}.5"),
        "usages": lines("Content-Usage: a{}=y"),
    }
    with ExitStack() as stack:
        yield {name: stack.enter_context(site(file)) for name, file in files.items()}


def warm(service: Service, held: Mapping[str, Site]) -> None:
    """Have each file fetched, after another was, so that there is a history."""
    files = {name: one.file for name, one in held.items()}
    for served in ({name: file[: len(file) * 9 // 10] for name, file in files.items()}, files):
        time.sleep(1.1)  # a version is known by the second it was first seen in
        for name, one in held.items():
            one.file = served[name]
            assert service.ask(Asked("POST", f"/v1/robots/refresh?{urlencode({'url': one.url})}")) == 200


def main() -> None:
    """Print the worst of each route, in milliseconds and units, and how many turns others had meanwhile."""
    with sites() as held, running() as service:
        warm(service, held)
        print(f"nothing: {1000 * service.idle.seconds:.0f} ms, {service.idle.worst} units")
        for route, requests in worst_requests({name: one.url for name, one in held.items()}).items():
            for number, asked in enumerate(requests):
                turns, status = service.turns_during(asked)
                said = f"{1000 * turns.seconds:.0f} ms, {turns.worst} units, {turns.number} turns"
                print(f"{route} {number}: {said} ({status})", flush=True)


if __name__ == "__main__":
    main()
