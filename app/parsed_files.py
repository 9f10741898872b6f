"""Parsed robots.txt files in memory, bounded in bytes, and numbered by revision."""

from dataclasses import dataclass
from itertools import count

from app.cache.byte_lru import ByteLRU
from app.cache.freshness import Recheck, Snapshot
from app.evaluate import CachedFile
from app.origin import Origin
from app.robots.access import Successful
from app.robots.robots_txt import RobotsTxt

FILES = 1024
"""The largest number of files, however small.

Each is about 40 objects, which take the garbage collector about a microsecond each. It may visit all of them at any
moment, even in a collection of young objects: that begins when allocations since the last one exceed deallocations by
700, which a full cache delays, because it frees one file for each that it parses.
"""

_BODILESS_BYTES = 1024
"""The cost of remembering that an origin has no file."""


@dataclass(slots=True)
class ParsedFile:
    """What was derived from a snapshot. `latest` is the last result for it, and `recheck` the model it was made for."""

    snapshot: Snapshot
    robots: RobotsTxt | None
    revision: int
    recheck: Recheck | None = None
    latest: CachedFile | None = None


class ParsedFiles:
    """At most FILES parsed files, one per origin, in at most `memory_bytes`."""

    def __init__(self, memory_bytes: int) -> None:
        self._files: ByteLRU[Origin, ParsedFile] = ByteLRU(memory_bytes, FILES)
        self._revisions = count(1)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes in use, and the number of origins, those without a file included."""
        return self._files.usage

    def get(self, origin: Origin, snapshot: Snapshot) -> ParsedFile:
        """The parsed file of `snapshot`; parses it if needed."""
        file = self._files.get(origin)
        # Identity, not equality: comparing bodies would cost time in proportion to their length.
        if file is not None and file.snapshot is snapshot:
            return file
        robots, size = None, _BODILESS_BYTES
        if isinstance(snapshot.access, Successful):
            # A refetch of the same bytes keeps the access object, so it needs no second parse.
            if file is not None and file.snapshot.access is snapshot.access:
                robots = file.robots
            robots = robots or parse(snapshot.access)
            size = robots.size
        file = ParsedFile(snapshot, robots, next(self._revisions))
        self._files.put(origin, file, size)
        return file


def parse(access: Successful) -> RobotsTxt:
    """Parse the body of a successful fetch."""
    return RobotsTxt(access.body, truncated=access.truncated)
