"""An archive that hangs."""

import threading
from collections.abc import Mapping
from pathlib import Path

from app.history.archive.folder import Folder


class Stuck(Folder):
    """A folder that takes nothing until it is released."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.released = threading.Event()
        self.writes = 0

    def put(self, files: Mapping[str, bytes]) -> None:
        self.writes += 1
        assert self.released.wait(30), "it was not released"
        super().put(files)
