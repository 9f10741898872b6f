"""Random requests that no client would send, from a seed, for `make fuzz NAME=api`; no I/O."""

import base64
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

PIECE = 65_536

POSTS = ("/v1/allowed", "/v1/permits", "/v1/permits/batch", "/v1/test", "/v1/indexing")
GETS = ("/v1/allowed", "/v1/robots", "/v1/robots/history", "/v1/robots/diff", "/healthz", "/openapi.json", "/nowhere")

NASTY = (
    "",
    "\0",
    "\ud800",
    "é",
    "\u202e",
    "%",
    "%zz",
    "%00",
    "*",
    "/",
    "\\",
    "$",
    "a" * 300,
    "\u0661",
    "[::1",
    "' OR 1=1--",
)


@dataclass(frozen=True, slots=True)
class Hostile:
    """The pieces sent on one connection; whether the client reads the answer, and whether it half-closes."""

    kind: str
    pieces: Sequence[bytes]
    reads: bool = True
    ends: bool = False


def requests(chance: random.Random, origins: Sequence[str]) -> Iterator[Hostile]:
    """Yield requests without end; questions are about `origins`."""
    kinds: list[Callable[[random.Random, Sequence[str]], Hostile]] = [
        _broken_framing,
        _two_ways_of_framing,
        _trailers,
        _large_head,
        _ahead,
        _json,
        _json,
        _hostile_agents,
        _hostile_url,
        _batch,
        _hostile_file,
        _hostile_file,
        _permit,
        _mutated,
        _left_early,
        _unread,
    ]
    while True:
        yield chance.choice(kinds)(chance, origins)


# Framing.


def _head(method: str, target: str, *fields: str) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def _post(path: str, body: bytes, kind: str = "application/json") -> bytes:
    fields = (f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close")
    return _head("POST", path, *fields) + body


def _get(path: str, **query: str) -> bytes:
    written = "&".join(f"{name}={quote(value, errors='surrogatepass')}" for name, value in query.items())
    return _head("GET", f"{path}?{written}", "Connection: close")


def _cut(data: bytes) -> list[bytes]:
    return [data[at : at + PIECE] for at in range(0, len(data), PIECE)]


def _broken_framing(chance: random.Random, _origins: Sequence[str]) -> Hostile:
    field = chance.choice(
        [
            "Content-Length: -1",
            "Content-Length: 99999999999999999999999",
            "Content-Length: 2, 2",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding : chunked",
            "Host: evil.test",
            "X: a\x00b",
            "X: a\r\n folded",
            "no colon",
            ": no name",
            "Expect: 200-maybe",
            "Upgrade: h2c\r\nConnection: Upgrade",
        ]
    )
    target = chance.choice(["/healthz", "*", "//", "http://evil.test/v1/allowed", "/%00", "/" + "a" * 300, "?", "\xff"])
    method = chance.choice(["GET", "POST", "PRI", "TRACE", "CONNECT", "get", "X" * 100])
    return Hostile("broken framing", [_head(method, target, field, "Connection: close") + b"{}"], ends=True)


def _two_ways_of_framing(chance: random.Random, _origins: Sequence[str]) -> Hostile:
    fields = [f"Content-Length: {chance.randrange(9)}", f"Content-Length: {chance.randrange(9)}"]
    fields.append(chance.choice(["Transfer-Encoding: chunked", "Transfer-Encoding: chunked, identity", "X: y"]))
    chance.shuffle(fields)
    smuggled = b"0\r\n\r\n" + _head("GET", "/v1/overrides")
    return Hostile("two ways of framing", [_head("POST", chance.choice(POSTS), *fields) + smuggled], ends=True)


def _trailers(chance: random.Random, _origins: Sequence[str]) -> Hostile:
    begin = _head("POST", chance.choice(POSTS), "Content-Type: application/json", "Transfer-Encoding: chunked")
    chunks = (
        b"2\r\n{}\r\n0\r\n" if chance.random() < 0.7 else b"2;" + b"x" * chance.randrange(2**18) + b"\r\n{}\r\n0\r\n"
    )
    unit = chance.choice([b"X: a\r\n", b"X-API-Key: b\r\n", b"a", b":\r\n", b"Content-Length: 5\r\n"])
    # At most 64 MiB; a service with limits reads little of it.
    trailers = [unit * (PIECE // len(unit))] * chance.choice([0, 1, 30, 1000])
    return Hostile("trailers", [begin + chunks, *trailers, b"\r\n\r\n"], ends=True)


def _large_head(chance: random.Random, _origins: Sequence[str]) -> Hostile:
    unit = chance.choice(["a:b", "Cookie: " + "c" * 2000, "X-Request-ID: x", "Accept: */*"])
    fields = [unit] * (chance.randrange(2**18) // len(unit))
    target = "/v1/allowed?" + chance.choice(["&", "agent=a&", "url=http://a.test/&", "%"]) * chance.randrange(9000)
    return Hostile("large head", _cut(_head("GET", target, *fields)), ends=True)


def _ahead(chance: random.Random, _origins: Sequence[str]) -> Hostile:
    one = _head("GET", chance.choice(["/healthz", "/metrics", "/openapi.json", "/v1/allowed?url=http://a/&agent=a"]))
    return Hostile("requests ahead", _cut(one * chance.randrange(1, 2000)), ends=True)


# Bodies.


def _value(chance: random.Random, depth: int = 0) -> Any:
    match chance.randrange(9 if depth < 6 else 6):
        case 0:
            return chance.choice([None, True, False])
        case 1:
            return chance.choice([0, -1, 2**63, 10**400, 1e308, -0.0])
        case 2:
            return chance.choice(NASTY)
        case 3:
            return "x" * chance.randrange(200_000)
        case 4:
            return [chance.choice(NASTY)] * chance.randrange(2000)
        case 5:
            return chance.choice(["http://a.test/", "ExampleBot", "rfc9309", "2026-11-21T18:30:00Z"])
        case 6:
            return [_value(chance, depth + 1) for _ in range(chance.randrange(5))]
        case _:
            return {chance.choice(NASTY): _value(chance, depth + 1) for _ in range(chance.randrange(5))}


_MEMBERS = (
    "url",
    "agent",
    "items",
    "robots",
    "urls",
    "agents",
    "dialect",
    "max_wait",
    "cost",
    "html",
    "headers",
    "outcome",
)


def _json(chance: random.Random, _origins: Sequence[str]) -> Hostile:
    path = chance.choice(POSTS)
    match chance.randrange(6):
        case 0:
            body = "{" + ",".join(f'"k{number}":1' for number in range(chance.randrange(300_000))) + "}"
        case 1:
            body = "[" * chance.randrange(500_000)
        case 2:
            body = '{"items":[' + ",".join(["{}"] * chance.randrange(300_000)) + "]}"
        case 3:
            body = (
                '{"url":"'
                + "\\ud800" * chance.randrange(100_000)
                + '","agent":1'
                + "0" * chance.randrange(100_000)
                + "}"
            )
        case 4:
            body = '{"robots":"", "urls":[' + ",".join(["[]"] * chance.randrange(100_000)) + '],"agents":["a"]}'
        case _:
            body = json.dumps({chance.choice(_MEMBERS): _value(chance) for _ in range(chance.randrange(8))})
    data = body.encode("utf-8", "surrogatepass")
    kind = chance.choice(["application/json", "text/plain", "application/x-ndjson", "multipart/form-data", ""])
    return Hostile("JSON", _cut(_post(path, data, kind)))


# Questions.


def _agent(chance: random.Random) -> str:
    unit = chance.choice(["a", "a ", "a/", "b-", "(", "Mozilla/5.0 (compatible; a/1.0) ", "é", "*", "\0", "\ud800"])
    return chance.choice(["", "a ", "x/1 "]) + unit * chance.randrange(1, 2048 // len(unit))


def _hostile_agents(chance: random.Random, origins: Sequence[str]) -> Hostile:
    url = f"{chance.choice(origins)}/{chance.choice(NASTY)}"
    agents = "".join(
        f"&agent={quote(_agent(chance)[:700], errors='surrogatepass')}" for _ in range(chance.randrange(1, 20))
    )
    target = f"/v1/allowed?url={quote(url, errors='surrogatepass')}{agents}&explain={chance.choice(['true', 'false'])}"
    return Hostile("hostile agents", [_head("GET", target, "Connection: close")])


def _hostile_url(chance: random.Random, origins: Sequence[str]) -> Hostile:
    host = chance.choice(
        [*origins, "http://127.0.0.1:1", "http://[::ffff:7f00:1]", "https://a..b", "http://" + "a." * 130]
    )
    path = "".join(chance.choice(NASTY) for _ in range(chance.randrange(40))) * chance.randrange(1, 30)
    query = {
        "url": f"{host}/{path}"[:16_000],
        "agent": _agent(chance)[:200],
        "wait": chance.choice(["0", "1", "-1", "nan"]),
    }
    for name in chance.sample(
        ["at", "as_of", "from", "to", "as", "dialect", "version", "max_age"], chance.randrange(4)
    ):
        query[name] = chance.choice([*NASTY, "2026-11-21T18:30:00Z", "facts", "v2", "9" * 400])
    return Hostile("hostile URL", [_get(chance.choice(GETS), **query)])


def _batch(chance: random.Random, origins: Sequence[str]) -> Hostile:
    path = chance.choice(["/v1/allowed", "/v1/permits/batch"])
    items = [
        {"url": f"{chance.choice(origins)}/{number}", "agent": chance.choice(["a", _agent(chance)[:100]]), "wait": 1}
        for number in range(chance.randrange(1, 120))
    ]
    if path == "/v1/allowed" and chance.random() < 0.5:
        lines = "\n".join(map(json.dumps, items)).encode("utf-8", "surrogatepass")
        return Hostile("batch", _cut(_post(path, lines, "application/x-ndjson")))
    return Hostile("batch", _cut(_post(path, json.dumps({"items": items}).encode("utf-8", "surrogatepass"))))


def file(chance: random.Random) -> str:
    """A large or slow robots.txt of at most about 500 KB."""
    line = chance.choice(
        [
            "User-agent: \x01\x01{}\nDisallow: /x\n",
            "Disallow: /*{}*a*b*c*d*e*f*g$\n",
            "Allow: /" + "%41*" * 20 + "{}\n",
            "Crawl-delay: {}\n",
            "Request-rate: {}/10s 0930-1145\n",
            "Sitemap: http://a.test/{}\n",
            "Content-Signal: ai-train=no, search={}\n",
            "Disallow: /[a-z{}]?*\\*\n",
            "{}\n",
            "\r{}\r\n",
        ]
    )
    begin = chance.choice(["User-agent: *\n", "User-agent: *\nRobot-version: 2.0\n", "\ufeffuser-agent:a\n", ""])
    size = chance.choice([10, 1000, 20_000])
    return (begin + "".join(line.format(number) for number in range(size)))[:400_000]


def _hostile_file(chance: random.Random, _origins: Sequence[str]) -> Hostile:
    body = {
        "urls": [
            f"http://a.test/{chance.choice('abcdefg') * chance.randrange(1, 200)}"
            for _ in range(chance.randrange(1, 60))
        ],
        "agents": [chance.choice(["a", "ExampleBot", "*"]) for _ in range(chance.randrange(1, 4))],
    }
    text = file(chance)
    if chance.random() < 0.2:
        body["robots_base64"] = base64.b64encode(text.encode("utf-16")).decode()  # type: ignore[assignment]
    else:
        body["robots"] = text  # type: ignore[assignment]
    if chance.random() < 0.2:
        body["dialects"] = ["rfc9309", "google", "seznam", "draft1996", "v2"]
    return Hostile("hostile file", _cut(_post("/v1/test", json.dumps(body).encode())))


def _permit(chance: random.Random, origins: Sequence[str]) -> Hostile:
    slots = [[chance.choice(origins), "a", "1:0123456789abcdef:a"]]
    forged = base64.urlsafe_b64encode(json.dumps(slots).encode()).decode().rstrip("=")
    permit = chance.choice(
        [
            forged,
            f"{forged}.{'A' * 22}",
            "a" * chance.randrange(1, 9000),
            quote(chance.choice(NASTY), errors="surrogatepass"),
        ]
    )
    body = json.dumps(
        {"status": chance.choice([429, 503, 200, 99]), "retry_after": chance.choice([86_400, "nan", 1e308])}
    )
    return Hostile("permit", [_post(f"/v1/permits/{permit}/outcome", body.encode())])


# Clients.


def _valid(chance: random.Random, origins: Sequence[str]) -> bytes:
    url = f"{chance.choice(origins)}/page"
    return chance.choice(
        [
            _get("/v1/allowed", url=url, agent="ExampleBot"),
            _post("/v1/permits", json.dumps({"url": url, "agent": "ExampleBot"}).encode()),
            _post("/v1/test", json.dumps({"robots": "", "urls": ["/"], "agents": ["a"]}).encode()),
        ]
    )


def _mutated(chance: random.Random, origins: Sequence[str]) -> Hostile:
    data = bytearray(_valid(chance, origins))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data))
        match chance.randrange(3):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at]
            case _:
                data[at:at] = chance.randbytes(chance.randrange(1, 5))
    return Hostile("mutated", [bytes(data)], ends=True)


def _left_early(chance: random.Random, origins: Sequence[str]) -> Hostile:
    whole = chance.choice([_hostile_file(chance, origins), _batch(chance, origins), _json(chance, origins)])
    data = b"".join(whole.pieces)
    return Hostile("left early", _cut(data[: chance.randrange(len(data))]), reads=False)


def _unread(chance: random.Random, origins: Sequence[str]) -> Hostile:
    whole = chance.choice([_hostile_file(chance, origins), _batch(chance, origins), _ahead(chance, origins)])
    return Hostile("unread", whole.pieces, reads=False)
