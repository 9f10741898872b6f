"""Errors that are results: of an item in a batch, for example, when the others go on."""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def as_value(error: E) -> E:
    """The error without its traceback and without the errors that led to it.

    They refer to the frames that the error passed, and so to all that these hold, such as parsed files. A frame that
    keeps the error would be in a cycle with it, and only a full garbage collection would free them all.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
