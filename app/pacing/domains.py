"""The registrable domain of a host name, by the public suffix list that the package `publicsuffixlist` brings."""

import logging
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

MAX_HOSTS = 16_384
"""Hosts whose domains are remembered: a lookup takes some microseconds."""

MAX_UNKNOWN = 1000
"""Unknown suffixes that are logged, each once."""

_log = logging.getLogger(__name__)


class RegistrableDomains:
    """Registrable domains. The sections of the list count both: `a.github.io` is one, `github.io` is none.

    A host that has none is its own: an address, a public suffix itself, and a name whose suffix is not in the list,
    which is logged.
    """

    def __init__(self) -> None:
        self._list = PublicSuffixList(accept_unknown=False)
        self._unknown: set[str] = set()
        self.of = lru_cache(MAX_HOSTS)(self._of)

    def _of(self, host: str) -> str:
        name = host.removesuffix(".")
        if name.rpartition(".")[2].isdigit():
            return host  # an IPv4 address, since no other host of an origin ends in a number
        found = self._list.privatesuffix(name)
        if found is None and self._list.publicsuffix(name) is None:
            self._note_unknown(name)
        return found or host

    def _note_unknown(self, host: str) -> None:
        suffix = host.rpartition(".")[2]
        if suffix not in self._unknown and len(self._unknown) < MAX_UNKNOWN:
            self._unknown.add(suffix)
            _log.warning("The public suffix list has no suffix .%s: %s and its like are paced by host", suffix, host)
