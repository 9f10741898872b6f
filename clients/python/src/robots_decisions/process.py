"""The name under which this process asks for slots. No I/O."""

import os
import secrets


class _Process:
    def __init__(self) -> None:
        self.choose()

    def choose(self) -> None:
        self.name = f"process-{secrets.token_hex(6)}"


_process = _Process()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_process.choose)


def process_name() -> str:
    """The name of all clients of this process that have none: slots are shared fairly between names, and a name keeps
    its turn. A forked process has its own."""
    return _process.name
