"""The operator's token of the services under test."""

from pathlib import Path
from tempfile import TemporaryDirectory

from app.auth.operator_token import FILE_NAME, keep_token

_directory = TemporaryDirectory(prefix="robots-token-")  # removed at the end of the process

TOKEN_FILE = Path(_directory.name) / FILE_NAME
keep_token(TOKEN_FILE)

TOKEN_HEADER = {"Authorization": f"Bearer {TOKEN_FILE.read_text().strip()}"}
"""The header field of an operator."""
