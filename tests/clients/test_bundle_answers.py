"""What the service decides, robots_core.arrow decides alike by a bundle that the service has sent."""

import random
import re
import tomllib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.api.routes.batch import ITEMS
from app.api.routes.bundle import BUNDLE_WINDOW
from robots_core.origin import BadUrl, read_target
from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.dialects import DIALECTS
from robots_core.times import instant
from tests.api.service import START, Service, listening, running
from tests.clients.arrow import decided, make_bundle
from tests.clients.crawling import ROOT
from tests.core.questions import AGENTS, files, host, questions
from tests.origins import Exchange, LoopbackOrigin, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FILES, ASKED, SEED = 150, 500, 20_261_125
PROFILES = '[agents.AcmeBot]\nprofile = "acme"\n[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n'
PAGE = b"<!doctype html><html><body>Are you a robot?</body></html>"
REPLIES = {
    "404": text(404),
    "403": text(403),
    "401": text(401),
    "429": text(429),
    "503": text(503),
    "challenge": text(202, PAGE.decode(), {"Content-Type": "text/html"}),
    "page": text(403, PAGE.decode(), {"Content-Type": "text/html"}),
    "loop": b"HTTP/1.1 302 Found\r\nLocation: /robots.txt\r\nContent-Length: 0\r\n\r\n",
    "nonsense": b"nonsense\r\n\r\n",
}
BODIES = {
    "empty": b"",
    "not UTF-8": b"\xff\xfeUser-agent: *\nDisallow: /caf\xe9\nDisallow: /private/\nCrawl-delay: 3\n",
    "truncated": b"User-agent: *\nDisallow: /private/\n#" + b"x" * BODY_LIMIT + b"\nDisallow: /\n",
}


def file(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@asynccontextmanager
async def serving(sites: Mapping[str, bytes | None]) -> AsyncIterator[LoopbackOrigin]:
    """Hosts that each have a reply; one without stays silent. AcmeBot gets the file of another host."""

    async def reply(exchange: Exchange) -> None:
        [name] = [
            line[6:].partition(b":")[0] for line in exchange.head.split(b"\r\n") if line.lower().startswith(b"host: ")
        ]
        names = list(sites)
        at = names.index(name.decode()) - (b"AcmeBot" in exchange.head)
        found = sites[names[at]]
        await (exchange.stall() if found is None else exchange.send(found))

    async with serve(reply) as origin:
        yield origin


def sites() -> dict[str, bytes | None]:
    """Real and damaged files, outcomes, and files that are hard to carry."""
    bodies = files(SEED, FILES)
    words = {"timeout": None, "dns": REPLIES["nonsense"]}
    found: dict[str, bytes | None] = {
        host(number): file(it) if isinstance(it, bytes) else words.get(it, REPLIES.get(it, text(404)))
        for number, it in enumerate(bodies)
    }
    others = [*REPLIES.values(), *map(file, BODIES.values()), None]
    return found | {host(FILES + number): it for number, it in enumerate(others)}


def pages(names: Sequence[str], port: str) -> list[tuple[str, str]]:
    """Fuzzed questions about the hosts of files, and some about all; all of them about hosts that are known."""
    found = []
    for asked in questions(SEED, files(SEED, FILES), ASKED):
        url = asked.url.replace("https://", "http://", 1).replace(host(asked.file), f"{host(asked.file)}:{port}", 1)
        try:
            if read_target(url).origin.host in names and f":{port}" in url:
                found.append((url, asked.agent))
        except BadUrl:
            continue
    chosen = random.Random(SEED)
    paths = "/", "/private/x", "/caf%E9", "/robots.txt", "/caf\u00e9?x=1"
    return found + [(f"http://{name}:{port}{path}", chosen.choice(AGENTS)) for name in names for path in paths]


async def by_service(service: Service, asked: Iterable[tuple[str, str]], **members: object) -> list[list[Any]]:
    """The rows that the service's own batches come to."""
    items = [{"url": url, "agent": agent, **members} for url, agent in asked]
    answers: list[dict[str, Any]] = []
    for start in range(0, len(items), ITEMS):
        body = {"items": items[start : start + ITEMS], "wait": 30}
        response = await service.client.post("/v1/allowed", json=body)
        assert response.status_code == 200, response.text
        answers += response.json()["answers"]
    return [row(answer) for answer in answers]


def row(answer: dict[str, Any]) -> list[Any]:
    if "problem" in answer:
        kind = answer["problem"]["type"].rpartition(":")[2]
        return [None, "bad_agent" if kind == "bad-agent" else kind, None, None, None, None]
    rule, rate = answer["rule"], answer["rate"]
    written = (None, None) if rule is None else (f"{rule['directive']}: {rule['pattern']}", rule["line"])
    interval = None if rate is None else rate["interval"]
    return [answer["verdict"], answer["reason"], *written, interval, answer["version"]]


def differences(asked: Iterable[tuple[str, str]], ours: list[list[Any]], theirs: list[list[Any]]) -> list[Any]:
    return [it for it in zip(asked, ours, theirs, strict=True) if it[1] != it[2]]


class Bundles:
    """Bundles of a list of origins, which the command writes into a folder."""

    def __init__(self, folder: Path, server: tuple[str, int], origins: Iterable[str]) -> None:
        self._folder = folder
        self._server = f"http://{server[0]}:{server[1]}"
        (folder / "origins").write_text("".join(f"{origin}/\n" for origin in origins))

    async def write(self, *arguments: str) -> Path:
        """The path of a bundle, and beside it the list of what is missing."""
        path = self._folder / f"{'-'.join(it.strip('-') for it in arguments)}.parquet"
        common = ("--server", self._server, "--output", str(path), "--missing", str(path.with_suffix(".missing")))
        ended = await make_bundle(str(self._folder / "origins"), *common, *arguments)
        missing = path.with_suffix(".missing").read_text().splitlines()
        assert (ended.code, ended.out) == (3 if missing else 0, ""), ended.err
        return path


def test_client_sends_no_more_than_the_service_reads_ahead() -> None:
    source = (ROOT / "clients/python/src/robots_decisions/bundle_rows.py").read_text()
    rows = re.search(r"^ROWS: Final = (\d+)$", source, re.MULTILINE)
    assert rows is not None
    assert int(rows[1]) < BUNDLE_WINDOW


@pytest.mark.timeout(600)
async def test_bundle_decides_as_the_service_does(store_url: str, tmp_path: Path) -> None:
    served = sites()
    async with (
        serving(served) as origin,
        running(store_url, dict.fromkeys(served, ("127.0.0.1",)), fetch_timeout=2.0) as service,
        listening(service) as address,
    ):
        site = origin.url.rpartition(":")[2]
        asked = pages(list(served), site)
        bundles = Bundles(tmp_path, address, (f"http://{name}:{site}" for name in served))

        current = await bundles.write("--fetch")  # which fetches all that is asked about then
        requests, now = len(origin.requests), instant(service.now)
        chosen: dict[str | None, dict[str, object]] = {None: {}, **{name: {"dialect": name} for name in DIALECTS}}
        before = {name: await by_service(service, asked, **members) for name, members in chosen.items()}
        decisions = await decided(current, asked, *({**members, "at": now} for members in chosen.values()))
        for name, ours in zip(chosen, decisions, strict=True):
            assert differences(asked, ours, before[name]) == [], name
        assert len(origin.requests) == requests
        reasons = {str(it[1]) for answers in before.values() for it in answers}
        assert reasons >= {*("rule", "no_match", "unavailable", "unreachable", "challenge", "forbidden", "implicit")}
        assert {"bad_agent", "no_rules", "no_group"} & reasons

        # Every host changes, and the past stays as it was.
        moved = dict(zip(served, [*list(served.values())[1:], text(404)], strict=True))
        served.update(moved)
        service.now += 2 * 86_400
        assert await by_service(service, asked) != before[None]
        then = instant(START + 60)
        past = await bundles.write("--as-of", then)
        theirs = await by_service(service, asked, as_of=then)
        [ours] = await decided(past, asked, {})
        assert differences(asked, ours, theirs) == []
        kept = [it[:2] for it, was in zip(theirs, before[None], strict=True) if was[0] in ("allow", "disallow")]
        assert kept == [was[:2] for was in before[None] if was[0] in ("allow", "disallow")]
        earlier = await bundles.write("--as-of", instant(START - 60))
        assert len(earlier.with_suffix(".missing").read_text().splitlines()) == len(served)
        [ours] = await decided(earlier, asked, {})
        assert {tuple(it[:2]) for it in ours if it[0]} == {("defer", "unknown_origin")}


async def test_fetch_profile_has_files_of_its_own(store_url: str, tmp_path: Path) -> None:
    own = tmp_path / "agents.toml"
    own.write_text(PROFILES)
    served = {name: file(b"User-agent: *\nDisallow: /%b\n" % name[:2].encode()) for name in ("h1.test", "h2.test")}
    names = dict.fromkeys(served, ("127.0.0.1",))
    async with (
        serving(served) as origin,
        running(store_url, names, agents_file=own) as service,
        listening(service) as address,
    ):
        site = origin.url.rpartition(":")[2]
        asked = [(f"http://{name}:{site}/{path}", "AcmeBot/1.0") for name in served for path in ("h1", "h2")]
        bundles = Bundles(tmp_path, address, (f"http://{name}:{site}" for name in served))
        theirs = await by_service(service, asked)
        plain, acme = await bundles.write("--fetch"), await bundles.write("--profile", "acme")
        own_agents = {"agents": tomllib.loads(PROFILES)["agents"]}
        assert await decided(acme, asked, {"profile": "acme"}, own_agents) == [theirs, theirs]
        assert [it[0] for it in theirs] == ["allow", "disallow", "disallow", "allow"]
        by_plain, by_acme = await decided(plain, asked, {}, {"profile": "acme"})
        assert [it[0] for it in by_plain] == ["disallow", "allow", "allow", "disallow"]
        assert {it[1] for it in by_acme} == {"unknown_origin"}
