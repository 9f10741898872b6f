"""What the commands have in common: the service and its key, bounds, and text for terminals."""

import argparse

from robots_decisions.cli.failures import Failed, Parser
from robots_decisions.permits import Failure, NoAnswer, naming

DEFAULT_SERVER = "http://127.0.0.1:8080"
"""The default address of the service."""

API_KEY = "ROBOTS_API_KEY"
"""The environment variable with the API key. There is no argument for it, since other users can read arguments."""

MAX_CONCURRENCY = 32
"""Requests that may be answered at once, at most."""

RESTART_WAIT = 60.0
"""Seconds for which the service is asked again while it does not respond: it may be restarting."""

PURPOSES = ("search", "ai-input", "ai-train")
"""What pages may be wanted for."""

REPORTED_LINES = 10
"""Unreadable lines that are reported one by one."""


def add_server(parser: Parser) -> None:
    """Add the argument --server."""
    parser.add_argument(
        "--server",
        metavar="URL",
        default=DEFAULT_SERVER,
        help=f"the service; default {DEFAULT_SERVER} (API key: ${API_KEY})",
    )


def concurrency(text: str) -> int:
    """The value of --concurrency."""
    if text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MAX_CONCURRENCY:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a number from 1 to {MAX_CONCURRENCY}")


def printable(text: str) -> str:
    """The text with escapes in place of characters that a terminal might obey."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def unanswered(server: str, failure: Failure) -> Failed:
    """The error of a command that the service gives no answer: why, and what to set."""
    remedy = f" {failure.remedy}" if isinstance(failure, NoAnswer) and failure.remedy else ""
    return Failed(f"{server} {printable(failure.why)}{with_settings(remedy)}")


def with_settings(text: str) -> str:
    """The text of an error with what to set as a command takes it."""
    return naming(text, API_KEY, "--server")
