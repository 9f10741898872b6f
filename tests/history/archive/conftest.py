"""Archives in a folder and in an object store."""

from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from app.history.archive.archive import Archive
from app.history.archive.object_store import ObjectStore
from app.history.archive.places import files_at
from tests.history.archive.stuck import Stuck


@pytest.fixture
def store() -> Iterator[str]:
    """The URL of an object store."""
    url = f"memory://archive-{token_hex(4)}/below"
    yield url
    ObjectStore(url).clear("")


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an archive may be."""
    return str(tmp_path) if request.param == "folder" else str(request.getfixturevalue("store"))


@pytest.fixture
def archive(place: str) -> Archive:
    return Archive(files_at(place))


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Stuck]:
    folder = Stuck(tmp_path)
    yield folder
    folder.released.set()
