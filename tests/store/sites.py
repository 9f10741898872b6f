"""Generated snapshots of sites, and the masters of a cluster that have them."""

from redis.crc import key_slot

from app.cache.freshness import Snapshot
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from tests.engines import Fleet, Node

NOW = 1000.0


def copy(site: Origin) -> Snapshot:
    return Snapshot(Successful(200, f"User-agent: *\nDisallow: /{site.host}\n".encode()), NOW, None)


def owner(fleet: Fleet, site: Origin) -> Node:
    """The master that has the key of the site."""
    return fleet.masters[key_slot(store_key(site).encode()) * len(fleet.masters) // 16384]


def store_key(site: Origin) -> str:
    return f"robots:{{{site.scheme}://{site.host}:{site.port}}}"
