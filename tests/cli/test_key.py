"""`python -m app key`: it prints a key and its lines for API_KEYS_FILE."""

from pathlib import Path

import pytest

from app.auth.keys import Scope, load_keys
from tests.cli.command import run


@pytest.mark.parametrize(
    ("flags", "scope"), [((), Scope.READ), (("--ingest",), Scope.INGEST), (("--admin",), Scope.ADMIN)]
)
async def test_printed_lines_admit_the_key_in_its_scope(tmp_path: Path, flags: tuple[str, ...], scope: Scope) -> None:
    ended = await run("key", "crawler-7", *flags)
    assert ended.code == 0, ended.err
    file = tmp_path / "keys.toml"
    file.write_text(ended.out)
    key = ended.err.strip()
    assert key not in ended.out
    found = load_keys(file).find(key.encode())
    assert found is not None
    assert (found.id, found.scopes) == ("crawler-7", frozenset({scope}))


async def test_invalid_id_exits_with_3_and_is_named() -> None:
    ended = await run("key", "a b")
    assert (ended.code, ended.out) == (3, "")
    assert "'a b'" in ended.err
