"""protego as a decider of batches, in a module that the workers of engines can import."""

from typing import Any

import pyarrow as pa
from protego import Protego


class OfProtego:
    """protego's parsers by host; what is no file is allowed."""

    def __init__(self, table: pa.Table) -> None:
        self._bodies = dict(zip(table["origin"].to_pylist(), table["body"].to_pylist(), strict=True))
        self._parsed: dict[str, Any] = {}

    def decide(self, batch: pa.RecordBatch) -> pa.Array:
        """The verdicts of a batch."""
        found = []
        for url, agent in zip(batch["url"].to_pylist(), batch["agent"].to_pylist(), strict=True):
            origin = url[: url.find("/", 8)]
            parsed = self._parsed.get(origin)
            if parsed is None:
                body = self._bodies.get(origin) or b""
                parsed = self._parsed[origin] = Protego.parse(body.decode("utf-8", "replace"))
            found.append("allow" if parsed.can_fetch(url, agent) else "disallow")
        return pa.array(found)
