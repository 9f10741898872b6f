"""Where an archive is: a folder, or the URL of an object store."""

import os
import re
from pathlib import Path
from typing import Final

from app.files.extras import needing
from app.history.archive.files import ArchiveFiles
from app.history.archive.folder import Folder

_OBJECTS: Final = "an archive in an object store"
_CREDENTIALS: Final = re.compile(r"://[^@\s]*:[^@\s]*@")


def is_url(place: str) -> bool:
    """Whether the place is a URL rather than a folder."""
    return "://" in place


def shown(place: str) -> str:
    """The place as a message may show it, without the credentials that a URL may have."""
    return _CREDENTIALS.sub("://***@", place)


def files_at(place: str) -> ArchiveFiles:
    """The files of the archive at a folder or a URL. Raises ValueError for a URL that cannot be used here."""
    if not is_url(place):
        return Folder(Path(place))
    _refuse_credentials(place)
    with needing("archive", _OBJECTS):
        from app.history.archive.object_store import ObjectStore

        return ObjectStore(place)


def check_writable(place: str) -> None:
    """Raise ValueError unless the place is a folder that can be written, or a URL of a known kind; it is not asked."""
    if not is_url(place):
        folder = Path(place)
        if not folder.is_absolute() or not folder.is_dir():
            raise ValueError("name a folder that exists by its absolute path, or a URL such as s3://bucket/path")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ValueError("no file can be made in this folder")
        return
    scheme = place.partition("://")[0]
    if scheme in ("file", "local"):
        raise ValueError("name a folder by its path, without file://")
    _refuse_credentials(place)
    with needing("archive", _OBJECTS):
        from fsspec import get_filesystem_class

        get_filesystem_class(scheme)


def _refuse_credentials(url: str) -> None:
    if _CREDENTIALS.search(url):
        raise ValueError(
            "leave the credentials out of the URL, and give them as the library of the store reads them: for s3:// as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
