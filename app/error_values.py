"""Errors that are results, such as that of one item of a batch."""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def as_value(error: E) -> E:
    """The error without its traceback and without the errors that led to it.

    They refer to the frames that the error passed, and so to their variables, such as parsed files. A frame that keeps
    the error would be in a cycle with it, which only a full garbage collection frees.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
