"""Parsed robots.txt files in memory, bounded in bytes, and numbered by revision."""

from dataclasses import dataclass
from itertools import count

from app.cache.byte_lru import ByteLRU
from app.cache.freshness import Recheck, Snapshot
from app.decisions.evaluate import CachedFile
from app.decisions.shared_answers import SharedAnswers
from robots_core.file import File
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from robots_core.robots.robots_txt import RobotsTxt

PARSED_FILES = 2048
"""The largest number of files, however small: a list of URLs of so many origins may come in any order.

Each is about 40 objects, which take the garbage collector up to half a microsecond each. It may visit all of them at
any moment, even in a collection of young objects: that begins when allocations since the last one exceed
deallocations by 700, which a full cache delays, because it frees one file for each that it parses.
"""

SHORT = 8 * 1024
"""Bytes of a file that is quick to read for the first time, whatever it says: a few milliseconds."""

_BODILESS_BYTES = 1024
"""The cost of remembering that an origin has no file."""


@dataclass(slots=True)
class ParsedFile:
    """What was derived from a snapshot. `latest` is the last result for it, and `recheck` the model it was made for.

    `version` is its id, None if the fetch failed. `read` has the names of the dialects that questions were decided
    under; None if the file is short. Groups and rules are compiled for each dialect, which takes long for a long file.
    """

    snapshot: Snapshot
    robots: RobotsTxt | None
    revision: int
    version: str | None
    read: set[str] | None
    shared: SharedAnswers
    recheck: Recheck | None = None
    latest: CachedFile | None = None


class ParsedFiles:
    """At most PARSED_FILES parsed files, one per origin, in at most `memory_bytes`."""

    def __init__(self, memory_bytes: int) -> None:
        self._files: ByteLRU[str, ParsedFile] = ByteLRU(memory_bytes, PARSED_FILES)
        self._revisions = count(1)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes in use, and the number of origins, those without a file included."""
        return self._files.usage

    def find(self, origin: Origin, snapshot: Snapshot, dialect: str) -> ParsedFile | None:
        """The parsed file of `snapshot` if it is in memory and, unless it is short, was read under the dialect."""
        file = self._files.get(origin.key)
        # Identity, not equality: comparing bodies would cost time in proportion to their length.
        if file is None or file.snapshot.access is not snapshot.access:
            return None
        if file.read is not None and dialect not in file.read:
            return None
        return file if file.snapshot is snapshot else self.get(origin, snapshot)

    def get(self, origin: Origin, snapshot: Snapshot) -> ParsedFile:
        """The parsed file of `snapshot`; parses it if needed."""
        file = self._files.get(origin.key)
        if file is not None and file.snapshot is snapshot:
            return file
        # A refetch of the same bytes keeps the access object, so they are neither hashed nor parsed again.
        if file is not None and file.snapshot.access is snapshot.access:
            robots, version, read = file.robots, file.version, file.read
        else:
            found = File(snapshot.access)
            robots, version, read = found.robots, found.version, None if is_short(snapshot) else set()
        size = _BODILESS_BYTES if robots is None else robots.size
        file = ParsedFile(snapshot, robots, next(self._revisions), version, read, SharedAnswers(robots))
        self._files.put(origin.key, file, size)
        return file


def is_short(snapshot: Snapshot) -> bool:
    """Whether the file of `snapshot`, if it has one, is quick to read for the first time."""
    access = snapshot.access
    return not isinstance(access, Successful) or len(access.body) <= SHORT
