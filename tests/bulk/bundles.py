"""Bundles of files."""

from typing import Any

import pyarrow as pa

from robots_core.arrow import MADE_AT
from tests.core.library import AT
from tests.core.questions import host


def bundle_of(bodies: list[bytes | str], **columns: Any) -> pa.Table:
    """A bundle of files and outcomes, which are those of tests.core.questions."""
    return pa.table(
        {
            "origin": [f"https://{host(number)}" for number in range(len(bodies))],
            "outcome": [body if isinstance(body, str) else "200" for body in bodies],
            "body": pa.array([None if isinstance(body, str) else body for body in bodies], pa.binary()),
            "version": [f"v{number}" for number in range(len(bodies))],
            **columns,
        }
    ).replace_schema_metadata({MADE_AT: AT.isoformat()})
