"""JSON that is encoded once for the many answers that contain it."""

from functools import lru_cache

import msgspec
from pydantic_core import to_json

from app.api.serialize import purposes_out
from robots_core.purposes.judge import Judgements


def fragment(value: object) -> msgspec.Raw:
    """The JSON of a model, or of what contains models."""
    return msgspec.Raw(to_json(value))


@lru_cache(1024)
def purposes_fragment(judgements: Judgements) -> msgspec.Raw:
    """The JSON of an answer's member `purposes`."""
    return fragment(purposes_out(judgements))
