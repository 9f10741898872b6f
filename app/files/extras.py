"""Libraries that only an extra of the distribution installs."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """A block that imports libraries of an extra; raises ValueError without them, which says that `what` needs it."""
    try:
        yield
    except ImportError as error:
        text = f"{what} needs the extra `{extra}`: pip install 'robots-decisions-server[{extra}]' ({error})"
        raise ValueError(text) from error
