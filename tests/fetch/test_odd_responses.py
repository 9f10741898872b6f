"""What two or more other clients read of an odd response, the fetch reads, or a reason says why not."""

import json
from ipaddress import ip_network

import pytest

from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.profile import FetchProfile
from robots_core.robots.access import Successful
from tests.fetch.odd_responses import CASES, CLIENTS, WHY, read, rows
from tests.origins import NO_TLS, Names, serve

SITE = "www.example.com"
FOUND = {row["case"]: row for row in map(json.loads, CASES.read_text().splitlines())}


async def ours(sent: bytes) -> str:
    """What the fetch reads of a response, as `read` says, or `error`."""
    async with serve(sent) as origin:
        fetch = Fetcher(
            profile=FetchProfile("RobotsDecisions/1"),
            guard=AddressGuard([ip_network("127.0.0.0/8")]),
            ports=PortPolicy(every=True),
            resolver=Names({SITE: [str(origin.address)]}),
            ssl_context=NO_TLS,
            timeout=20.0,
        )
        fetched = await fetch.fetch(origin.named(SITE))
    return read(fetched.access.body) if isinstance(fetched.access, Successful) else "error"


def test_every_row_was_asked() -> None:
    assert list(FOUND) == [name for name, _ in rows()]
    assert len(FOUND) > 200


@pytest.mark.parametrize(("name", "sent"), list(rows()), ids=lambda it: it if isinstance(it, str) else "")
async def test_the_fetch_reads_what_others_read(name: str, sent: bytes) -> None:
    found = await ours(sent)
    readers = [client for client in CLIENTS if FOUND[name][client] == "rules"]
    if name in WHY:
        assert (found, len(readers) >= 2) == ("error", True)
    elif len(readers) >= 2:
        assert found == "rules"
