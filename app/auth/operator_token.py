"""The operator's token of a service without API keys: a key with the scope admin, made at the start of the service."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from app.auth.keys import KEY_LIMIT, ApiKey, Keys, Scope, new_key
from app.files.toml_file import read_file

OPERATOR = "operator"
"""The id of the token."""

FILE_NAME = "operator-token"

NO_TOKEN = Keys({})
"""The keys of a service without API keys and without a token, where operators' routes refuse every caller."""


@contextmanager
def token_file(path: Path | None) -> Iterator[Path | None]:
    """The file at `path` with a token in it; without a path, one in a directory that is removed after the block.

    None if there is no directory for temporary files. Raises ValueError if the file cannot be written or read.
    """
    with ExitStack() as stack:
        if path is None:
            try:
                path = Path(stack.enter_context(TemporaryDirectory(prefix="robots-decisions-")), FILE_NAME)
            except OSError:
                yield None
                return
        keep_token(path)
        yield path.absolute()


def keep_token(path: Path) -> None:
    """Write a new token to the file at `path`, for its owner only, unless the file exists. Raises ValueError.

    Processes that start at the same time keep the same token.
    """
    token, _ = new_key(OPERATOR, Scope.ADMIN)
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(f"{token}\n")
            with suppress(FileExistsError):
                path.hardlink_to(new)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(f"it cannot be written: {error.strerror}") from None
    load_token(path)


def load_token(path: Path) -> Keys:
    """The token in the file, as the only key. Raises ValueError, which does not quote it."""
    token = read_file(path, KEY_LIMIT, private=True).strip()
    id_, _, secret = token.partition(".")
    if id_ != OPERATOR or not secret:
        raise ValueError(f"it holds no token, which begins with '{OPERATOR}.': remove it, and the next start makes one")
    digest = hashlib.sha256(token.encode()).hexdigest()
    return Keys({OPERATOR: ApiKey(OPERATOR, digest, frozenset({Scope.ADMIN}), None)})
