"""The paths below which sites look for an identity, at the origin that Signature-Agent names. Needs no library."""

from typing import Final

DIRECTORY_PATH: Final = "/.well-known/http-message-signatures-directory"

CARD_PATH: Final = "/.well-known/signature-agent-card"

CRAWLER_PAGES: Final = "/bot/"
"""What the paths of the pages about crawlers begin with; the crawler's product token follows."""


def is_public(path: str) -> bool:
    """Whether anyone may get the path, under the host of an identity."""
    return path in (DIRECTORY_PATH, CARD_PATH) or path.startswith(CRAWLER_PAGES)
