"""Pools: the origins that share one queue of slots, because one server is likely to be behind them; pure.

A pool is a text: `www.example.com` for a host, `example.com` for a domain, `https://www.example.com` for an origin, and
`pool:shop` for one that the domain table names.
"""

from collections.abc import Callable
from enum import StrEnum

from app.cache.recheck import DomainTable
from app.pacing.slots import NAMED
from robots_core.origin import Origin


class PaceBy(StrEnum):
    """What shares one queue if the domain table does not say."""

    ORIGIN = "origin"
    HOST = "host"
    DOMAIN = "domain"


def pool_of(origin: Origin, by: PaceBy, table: DomainTable, domain_of: Callable[[str], str]) -> str:
    """The pool of an origin. `domain_of` gives the registrable domain of a host name, else the host."""
    named = table.pool(origin.host)
    if named is not None:
        return f"{NAMED}{named}"
    match by:
        case PaceBy.ORIGIN:
            return origin.with_profile(None).key
        case PaceBy.HOST:
            return origin.uri_host
        case PaceBy.DOMAIN:
            return origin.uri_host if ":" in origin.host else domain_of(origin.host)
