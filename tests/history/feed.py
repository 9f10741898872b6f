"""Entries of the change feed, and leases of its groups that have ended."""

from collections.abc import Sequence
from typing import Any

from app.history.change import Change
from app.history.redis_changes import STREAM
from app.redis.connect import Client

DAY = 24 * 3600 * 1000
"""Milliseconds."""


async def add_changes(client: Client, count: int) -> list[str]:
    """Add changes to the feed; return their ids."""
    added = []
    for number in range(count):
        text = change_text(number)
        id_ = await client.xadd(STREAM, {"change": text})
        assert isinstance(id_, bytes)
        added.append(id_.decode())
    return added


def change_text(number: int) -> str:
    """A change of a file, as the feed has it."""
    url = f"https://{number}.example.com/robots.txt"
    change = Change(url=url, profile=None, from_="a" * 16, to="b" * 16, agents=[], truncated=False)
    return change.model_dump_json()


async def end_leases(client: Client, group: str, ids: Sequence[str] | None = None) -> None:
    """Make the leases of a group (or of these changes) a day old.

    Redis forgets those of changes that were removed.
    """
    leased: list[Any] = [entry["message_id"] for entry in await client.xpending_range(STREAM, group, "-", "+", 100_000)]
    ended = [id_ for id_ in leased if ids is None or id_.decode() in ids]
    if ended:
        await client.xclaim(STREAM, group, "service", 0, ended, idle=DAY, justid=True)
