"""The paths below which sites look for an identity, at the origin that Signature-Agent names. Needs no library."""

from typing import Final

DIRECTORY_PATH: Final = "/.well-known/http-message-signatures-directory"

CARD_PATH: Final = "/.well-known/signature-agent-card"

PUBLIC_PATHS: Final = frozenset({DIRECTORY_PATH, CARD_PATH})
"""Paths that anyone may get, under the host of an identity."""
