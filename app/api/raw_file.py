"""A robots.txt as it came, octet for octet."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Response

# The bytes are somebody else's: a browser is to show them as text, whatever they look like, and run nothing.
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}

DOCUMENTED: Final[Mapping[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string", "description": "With as=text: the bytes."}}}}
}
"""For the OpenAPI document: what a route answers with `as=text`."""


def answer(body: bytes) -> Response:
    """The file as an answer."""
    return Response(body, media_type="text/plain", headers=_HEADERS)
