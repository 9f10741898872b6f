"""REDIS_PASSWORD_FILE: the password of the store in a file, which may change while the service runs."""

from pathlib import Path

from redis.credentials import CredentialProvider

from app.files.reloaded_file import ReloadedFile
from app.files.toml_file import read_file

PASSWORD_LIMIT = 16 * 1024
"""Bytes of the longest password: some providers take access tokens of several kilobytes for passwords."""


def load_password(path: Path) -> str:
    """Read the password, without a line break at its end. Raises ValueError, which does not quote it.

    Other users must neither read nor change the file.
    """
    password = read_file(path, PASSWORD_LIMIT, private=True).removesuffix("\n").removesuffix("\r")
    if not password:
        raise ValueError("it is empty, and a password is expected")
    if any(character < " " for character in password):
        # The file of something else, such as a certificate, or a password with a line break too many.
        raise ValueError("it has several lines or control characters, and only a password is expected")
    return password


class FileCredentials(CredentialProvider):
    """The credentials for a new connection; the password is that of the file at that time."""

    def __init__(self, username: str | None, password: ReloadedFile[str]) -> None:
        self._username = username
        self._password = password

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """The credentials with the password that was last read."""
        password = self._password.value
        return (password,) if self._username is None else (self._username, password)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """The credentials with the password that the file has now; with the last one, if it cannot be read."""
        await self._password.current()
        return self.get_credentials()
