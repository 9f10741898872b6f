"""The operator's token of the services under test, which all processes of the tests share."""

from pathlib import Path

from app.auth.operator_token import FILE_NAME, keep_token

TOKEN_FILE = Path(__file__).parents[1] / "build" / "tests" / FILE_NAME
keep_token(TOKEN_FILE)

TOKEN_HEADER = {"Authorization": f"Bearer {TOKEN_FILE.read_text().strip()}"}
"""The header field of an operator."""
