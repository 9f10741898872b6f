"""Clear error messages about invalid values, from pydantic's errors."""

from pydantic_core import ErrorDetails


def shown(value: object) -> str:
    """A value as error messages quote it: at most 61 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, or deeply nested tables
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:60] + "…"


def message(error: ErrorDetails) -> str:
    """What is wrong with a value, to follow it in a sentence: `expected a valid number`."""
    return error["msg"].removeprefix("Value error, ").replace("Input should be", "expected", 1)
