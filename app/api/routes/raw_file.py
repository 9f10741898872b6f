"""A robots.txt as received, byte for byte."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Response

# The bytes are untrusted: a browser must show them as text, whatever they look like, and run nothing.
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}

DOCUMENTED: Final[Mapping[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string", "description": "With as=text: the file."}}}}
}
"""The response to `as=text`, for the OpenAPI document."""


def answer(body: bytes) -> Response:
    """The response that holds a file."""
    return Response(body, media_type="text/plain", headers=_HEADERS)
