"""What an archive needs of the place where it is."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol


class Line(NamedTuple):
    """A line without its break, and where it is: from byte `at` of the file or object `place`."""

    place: str
    at: int
    data: bytes


class ArchiveFiles(Protocol):
    """Where an archive is; see app.history.archive.folder. Every method raises OSError."""

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write files that never change."""

    def append(self, files: Mapping[str, bytes]) -> dict[str, tuple[str, int]]:
        """Append whole lines to files; for each, where they begin: the file or object, and the byte there."""

    def read(self, name: str) -> bytes | None:
        """The content of a file that never changes, None if there is none."""

    def part(self, place: str, at: int, size: int) -> bytes:
        """`size` bytes from byte `at` of a place that `append` returned; fewer if there are no more."""

    def lines(self, name: str) -> Iterator[Line]:
        """The lines of a file; one longer than LONGEST_LINE may come in parts. None if there is no such file."""

    def children(self, below: str) -> list[str]:
        """The names of the files and folders in a folder, without its own."""

    def names(self, below: str) -> Iterator[str]:
        """The names of all files below a folder, in order."""

    def clear(self, below: str) -> None:
        """Remove a folder with all that it has."""
