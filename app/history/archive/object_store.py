"""The files of an archive in an object store, by fsspec; the layout is that of app.history.archive.folder.

An object cannot be appended to: a log, whose name ends with `.ndjson`, is a folder here, with an object for each write.
"""

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Final

from fsspec.core import url_to_fs

from app.history.archive.files import Line

_LOG: Final = ".ndjson"
_PARTS_AT_ONCE: Final = 100


class ObjectStore:
    """Reads and writes objects below a URL of fsspec, such as s3://bucket/path; every method raises OSError.

    Raises ImportError without the library that the URL needs, and ValueError for an unknown kind of URL.
    """

    def __init__(self, url: str) -> None:
        self._store, root = url_to_fs(url)
        self._root = root.rstrip("/")

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write objects that never change; to write one again does no harm, since its name says what it has."""
        with _as_os_error():
            self._store.pipe({self._path(name): data for name, data in files.items()})

    def append(self, files: Mapping[str, bytes]) -> dict[str, tuple[str, int]]:
        """Append whole lines to logs. They need not be in the order of the writes of several processes."""
        part = f"{time.time_ns():020}-{token_hex(4)}"
        with _as_os_error():
            self._store.pipe({f"{self._path(name)}/{part}": data for name, data in files.items()})
        return {name: (f"{name}/{part}", 0) for name in files}

    def read(self, name: str) -> bytes | None:
        """The content of an object, None if there is none."""
        return self._cat(name)

    def part(self, place: str, at: int, size: int) -> bytes:
        """`size` bytes of an object from byte `at`; none if there is no such object."""
        return self._cat(place, at, at + size) or b""

    def lines(self, name: str) -> Iterator[Line]:
        """The lines of a log, which is read some objects at a time."""
        parts: list[str] = []
        with suppress(FileNotFoundError), _as_os_error():
            parts = self._find(self._path(name))
        for first in range(0, len(parts), _PARTS_AT_ONCE):
            some = parts[first : first + _PARTS_AT_ONCE]
            with _as_os_error():
                found = self._store.cat(some)
            for part in some:
                at = 0
                for data in io.BytesIO(found[part]):
                    yield Line(part.removeprefix(f"{self._root}/"), at, data.removesuffix(b"\n"))
                    at += len(data)

    def children(self, below: str) -> list[str]:
        """The names in a folder."""
        return [path.rstrip("/").rpartition("/")[2] for path in self._list(below)]

    def names(self, below: str) -> Iterator[str]:
        """The names of all objects and logs below a folder, in order."""
        for child in self._list(below):  # one after the other, since an archive may have millions of objects
            last = None
            with _as_os_error():
                paths = self._find(child)
            for path in paths:
                name = path.removeprefix(f"{self._root}/")
                log, is_log, _ = name.partition(f"{_LOG}/")
                name = f"{log}{_LOG}" if is_log else name
                if name != last:
                    last = name
                    yield name

    def clear(self, below: str) -> None:
        """Remove a folder with all that it has."""
        with suppress(FileNotFoundError), _as_os_error():
            self._store.rm(self._path(below), recursive=True)

    def _cat(self, name: str, begin: int | None = None, end: int | None = None) -> bytes | None:
        with suppress(FileNotFoundError), _as_os_error():
            data: bytes = self._store.cat_file(self._path(name), start=begin, end=end)
            return data
        return None

    def _list(self, below: str) -> list[str]:
        with suppress(FileNotFoundError), _as_os_error():
            self._store.invalidate_cache()
            return sorted(self._store.ls(self._path(below), detail=False))
        return []

    def _find(self, path: str) -> list[str]:
        self._store.invalidate_cache()  # other processes write, too
        return sorted(self._store.find(path))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # the libraries of stores have errors of their own, with no class in common
        raise OSError(f"{type(error).__name__}: {error}") from error
