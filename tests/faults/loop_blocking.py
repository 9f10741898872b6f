"""How long one request blocks the event loop: `python -m tests.faults.loop_blocking` prints the worst of each route.

While the service answers the worst known request of a route, this process requests /healthz every PAUSE seconds on
another connection, and hashes units of data until each answer arrives. The number of units measures how long the event
loop was blocked, whatever the speed and the load of the machine.
"""

import base64
import gzip
import hashlib
import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from itertools import count, islice
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlencode, urlsplit

from robots_core.origin import URL_LIMIT
from tests.bench.adversaries import Adversary, adversaries
from tests.faults.process import process
from tests.operator_token import TOKEN_HEADER

LIMIT = 512_000
UNIT = bytes(512 * 1024)
IDLE_PROBES = 100
PAUSE = 0.01
"""Seconds between two probes, so that the probes do not keep the service busy."""
PATIENCE = 120.0
COLD = 20
"""Origins of one request, or of as many requests at once, whose large files are read for the first time."""

_JSON = {"Content-Type": "application/json"}


class Request(NamedTuple):
    """A request, and how many bytes of its answer to read before disconnecting."""

    method: str
    path: str
    body: bytes | None = None
    read: int = 64 * 1024 * 1024


AtOnce: TypeAlias = Sequence[Request]
"""Requests that are sent at the same time."""


class Lag(NamedTuple):
    """The longest wait for an answer of /healthz, in units and seconds, and the number of probes."""

    worst: int
    seconds: float
    number: int


class Probe:
    """Requests /healthz on its own connection."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self, over: Callable[[], bool]) -> Lag:
        """Repeat requests until `over()`, and return the lag."""
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
            time.sleep(PAUSE)
        return Lag(worst, slowest, count)

    def _read_answer(self) -> None:
        answer = b""
        while not answer.endswith(b"}"):
            piece = self._socket.recv(65_536)
            assert piece, "the service closed the connection"
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200")

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()


class Service:
    """A service in its own process, and probes of it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "", parts.port or 0
        self.idle = self._lag(_after(IDLE_PROBES))

    def send(self, request: Request) -> int:
        """The status of the answer."""
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE)
        try:
            connection.request(
                request.method, request.path, request.body, TOKEN_HEADER | (_JSON if request.body else {})
            )
            answer = connection.getresponse()
            left = request.read
            while left > 0 and (piece := answer.read(min(65_536, left))):
                left -= len(piece)
            return answer.status
        finally:
            connection.close()

    def lag_during(self, requests: AtOnce) -> tuple[Lag, set[int]]:
        """The lag while the requests are answered, and the statuses of the answers."""
        statuses: list[int] = []
        senders = [
            threading.Thread(target=lambda one=request: statuses.append(self.send(one)), daemon=True)
            for request in requests
        ]
        for sender in senders:
            sender.start()
        lag = self._lag(lambda: not any(sender.is_alive() for sender in senders))
        assert len(statuses) == len(requests)
        return lag, set(statuses)

    def _lag(self, over: Callable[[], bool]) -> Lag:
        with closing(Probe(*self._address)) as probe:
            return probe.run(over)


@contextmanager
def running() -> Iterator[Service]:
    """A service that runs while the block lasts."""
    with process(ACCESS_LOG="false") as one:
        yield Service(one.wait_ready())


@contextmanager
def site(file: bytes) -> Iterator["Site"]:
    """An origin on loopback with this robots.txt."""
    origin = Site(file)
    thread = threading.Thread(target=origin.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield origin
    finally:
        origin.server.shutdown()
        origin.server.server_close()
        thread.join()


class Site:
    """The file that an origin serves, which may change. Every address of 127.0.0.0/8 at its port is an origin."""

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

        self.server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def _after(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is None


GLOBS = ("v2: 15,000 sets", "v2: 30 globs of sets", "v2: 15,000 globs that backtrack")
"""The slowest patterns of version 2.0, by `make bench NAME=hostile`."""

FILES = {
    **dict(zip(("sets", "stars", "backtracking"), GLOBS, strict=True)),
    "names": "rfc9309: 34,000 agents",
    "groups": "24,000 groups of one agent",
    "keys": "rfc9309: 64,000 lines without a colon",
    "rates": "as many as fit of Request-rate:1/{}",
    "pages": "google: index pages",
}
"""Files of `tests.bench.adversaries` that are slow to parse, lint or compare."""


@cache
def _hostile() -> Mapping[str, Adversary]:
    by_name = {one.name: one for one in adversaries() if one.name in FILES.values()}
    return {short: by_name[name] for short, name in FILES.items()}


def lines(line: str) -> bytes:
    """A group with as many of these lines as fit; `{}` is the number of the line."""
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


def _get(route: str, **query: object) -> Request:
    return Request("GET", f"{route}?{urlencode(query, doseq=True)}")


def _post(route: str, members: Mapping[str, object], **others: Any) -> Request:
    return Request("POST", route, json.dumps(members).encode(), **others)


_unused = count(int(IPv4Address("127.2.0.1")))


def cold_urls(url: str, number: int) -> list[str]:
    """As many origins with the file of the one at `url`; none was asked about before."""
    port = urlsplit(url).port
    return [f"http://{IPv4Address(address)}:{port}/" for address in islice(_unused, number)]


def worst_requests(urls: Mapping[str, str]) -> dict[str, list[AtOnce]]:
    """The worst known requests by route; `urls` are of origins with hostile files."""
    return {
        **{route: [[request] for request in requests] for route, requests in _worst_known(urls).items()},
        "20 GET /v1/allowed": [
            [_get("/v1/allowed", url=url, agent="x", wait=60) for url in cold_urls(urls["groups"], COLD)]
        ],
        "POST /v1/allowed, 20 cold": [
            [_post("/v1/allowed", {"items": _items(cold_urls(urls["groups"], COLD)), "wait": 60})]
        ],
        "POST /v1/permits/batch, 20 cold": [
            [_post("/v1/permits/batch", {"items": _items(cold_urls(urls["groups"], COLD))})]
        ],
    }


def _items(urls: Sequence[str]) -> list[dict[str, str]]:
    return [{"url": url, "agent": "x"} for url in urls]


def _worst_known(urls: Mapping[str, str]) -> dict[str, list[Request]]:
    hostile = _hostile()
    globs = ("sets", "stars", "backtracking")
    slow = [(urls[name] + hostile[name].path)[:URL_LIMIT] for name in globs]
    posts = ("/v1/allowed", "/v1/permits", "/v1/permits/batch", "/v1/test", "/v1/indexing")
    large = {route: [Request("POST", route, body) for body in (MEMBERS, TOKENS)] for route in posts}
    items = [{"url": urls["agents"] + f"/{number}", "agent": "a"} for number in range(400)]
    test = {"urls": [f"http://h/{number}" for number in range(10_000)], "agents": ["0000"]}
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
        "POST /v1/permits": [*large["/v1/permits"]],
        "POST /v1/permits/batch": [
            *large["/v1/permits/batch"],
            _post("/v1/permits/batch", {"items": [{**item, "max_wait": 0} for item in items]}),
        ],
        "PUT /v1/robots": [Request("PUT", "/v1/robots?url=http://h/", body) for body in (MEMBERS, TOKENS, *copies())],
        "POST /v1/test": [
            *large["/v1/test"],
            _post("/v1/test", {"robots": AGENTS.decode(), **test}),
            _post("/v1/test", {"robots": AGENTS.decode(), **test, "explain": True}),
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
            *(_post("/v1/indexing", {"agents": ["a"], "html": html}) for html in PAGES),
        ],
        "GET /v1/robots": [_get("/v1/robots", url=urls[name], agent="x") for name in CHECKED],
        "GET /v1/robots/history": [_get("/v1/robots/history", url=urls["sets"])],
        "GET /v1/robots/diff": [
            *(_get("/v1/robots/diff", url=urls[name], dialect="v2") for name in globs),
            *(_get("/v1/robots/diff", url=urls[name]) for name in ("delays", "names", "groups")),
            _get("/v1/robots/diff", url=urls["pages"], dialect="google"),
        ],
    }


def copies() -> list[bytes]:
    """Responses whose bodies decode to little or much: members of gzip without end, and a bomb."""
    return [
        json.dumps(
            {
                "status": 200,
                "observed_at": "2026-01-01T00:00:00Z",
                "robots_base64": base64.b64encode(body).decode(),
                "headers": [["Content-Encoding", "gzip"]],
            }
        ).encode()
        for body in (
            gzip.compress(b"", mtime=0) * 100_000,
            gzip.compress(b"a", mtime=0) * 95_000,
            gzip.compress(bytes(10**8)),
            gzip.compress(AGENTS),
        )
    ]


PAGES = (
    *(tag * (2**20 // len(tag)) for tag in ("<a>", "<p><b>", "<!>", "<meta name=a>", '</a b=">')),
    "<b>" * 174_762 + "</i>" * 131_072,
    "<table><td>" * 47_662 + "</tr>" * 104_857,
    "<b>" * 20_000 + "</i>" * 5_000,
    "<div>" * 20_000 + "</p>" * 5_000,
    "<a" + " b=c" * 250_000,
    "<meta name=a content='" + "&#9" * 40_000 + "'>",
)
"""Pages that take parsers of HTML long: elements that stay open, end tags without a start, markup without an end."""

CHECKED = ("delays", "usages", "agents", "names", "groups", "keys", "rates")
"""Files whose warnings are slow to compute."""


@contextmanager
def sites() -> Iterator[Mapping[str, Site]]:
    """Origins with slow files."""
    files = {
        **{name: one.body for name, one in _hostile().items()},
        "agents": CONTROLS * 30 + b"user-agent: a\ndisallow: /x\n",
        "delays": lines("Crawl-delay: {}.5"),
        "usages": lines("Content-Usage: a{}=y"),
    }
    with ExitStack() as stack:
        yield {name: stack.enter_context(site(file)) for name, file in files.items()}


def warm(service: Service, origins: Mapping[str, Site]) -> None:
    """Fetch a former version of each file and then the file, so that it has a history."""
    files = {name: one.file for name, one in origins.items()}
    for served in ({name: file[: len(file) * 9 // 10] for name, file in files.items()}, files):
        time.sleep(1.1)  # a version is identified by the second in which it was first seen
        for name, one in origins.items():
            one.file = served[name]
            assert service.send(Request("POST", f"/v1/robots/refresh?{urlencode({'url': one.url})}")) == 200


def main() -> None:
    """Print the worst request of each route, in milliseconds and units, with the number of probes."""
    with sites() as origins, running() as service:
        warm(service, origins)
        print(f"nothing: {1000 * service.idle.seconds:.0f} ms, {service.idle.worst} units")
        for route, requests in worst_requests({name: one.url for name, one in origins.items()}).items():
            for number, at_once in enumerate(requests):
                lag, statuses = service.lag_during(at_once)
                result = f"{1000 * lag.seconds:.0f} ms, {lag.worst} units, {lag.number} probes"
                print(f"{route} {number}: {result} {sorted(statuses)}", flush=True)


if __name__ == "__main__":
    main()
