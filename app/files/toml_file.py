"""TOML files that operators write: bounded reads, and errors that say what to fix."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from app.files.validation import message, shown

M = TypeVar("M", bound=BaseModel)


def read_file(path: Path, limit: int, *, private: bool = False) -> str:
    """Read a file of at most `limit` bytes. Raises ValueError.

    A `private` file must not be readable or writable by other users, nor writable by its group.
    """
    try:
        with path.open("rb") as file:
            if private:
                _check_mode(os.fstat(file.fileno()).st_mode)
            data = file.read(limit + 1)
    except OSError as error:
        raise ValueError(f"it cannot be opened: {error.strerror}") from None
    if len(data) > limit:
        raise ValueError(f"it is longer than {limit} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None


def _check_mode(mode: int) -> None:
    if os.name == "posix" and mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise ValueError(
            f"its mode is {stat.S_IMODE(mode):04o}, so other users may read or change it: run `chmod 600` on it"
        )


def parse(text: str, what: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError; its message calls the expected content `what`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"it is not a {what}: its values are nested too deeply") from None


def read_row(model: type[M], value: Any, name: str) -> M:
    """Read a table as `model`. Raises ValueError, whose text begins with `name`, as in `the suffix 'a' has min = 'x'`.

    The values of fields with `repr=False` are not quoted.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    # A misspelt field is named as such, rather than as a missing one.
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    location, fields = fault["loc"], ", ".join(known)
    field, at_top = ".".join(map(str, location)), len(location) == 1
    quoted = f"{field} = {shown(fault['input'])}" if field else shown(value)
    match fault["type"]:
        case "model_type":
            detail = f"has {quoted}, where a table{'' if field else f' of {fields}'} is expected"
        case "missing":
            detail = f"has no {field}"
        case "extra_forbidden":
            # [example.com] is the table `com` in the table `example`, which is easily overlooked.
            hint = (
                '; a name with dots goes in quotes, as in ["example.com"]' if isinstance(fault["input"], dict) else ""
            )
            detail = f"has an unknown field {shown(field)}" + (f"; the fields are {fields}{hint}" if at_top else "")
        case _ if not field:
            detail = message(fault)
        case _ if not known[str(location[0])].repr:
            detail = f"has an invalid {field}; {message(fault)}"
        case _:
            detail = f"has {quoted}; {message(fault)}"
    raise ValueError(f"{name} {detail}")
