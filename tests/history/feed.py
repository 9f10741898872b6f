"""Entries of the change feed."""

from redis.asyncio import Redis

from app.history.change import Change
from app.history.redis_changes import CHANGES_STREAM


async def add_changes(client: Redis, count: int) -> list[str]:
    """Add changes to the feed; return their ids."""
    added = []
    for number in range(count):
        text = change_text(number)
        id_ = await client.xadd(CHANGES_STREAM, {"change": text})
        assert isinstance(id_, bytes)
        added.append(id_.decode())
    return added


def change_text(number: int) -> str:
    """A change of a file, as the feed has it."""
    url = f"https://{number}.example.com/robots.txt"
    change = Change(url=url, profile=None, from_="a" * 16, to="b" * 16, agents=[], truncated=False)
    return change.model_dump_json()
