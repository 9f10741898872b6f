"""The operator's token: made once, private, and never quoted."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.auth.keys import Scope
from app.auth.operator_token import FILE_NAME, OPERATOR, keep_token, load_token, token_file


def test_a_new_token_is_for_its_owner_only_and_opens_operators_routes(tmp_path: Path) -> None:
    path = tmp_path / "made" / FILE_NAME
    keep_token(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]
    key = load_token(path).find(path.read_bytes().strip())
    assert key is not None
    assert (key.id, key.may(Scope.ADMIN), key.limit) == (OPERATOR, True, None)


def test_a_token_is_kept(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    keep_token(path)
    token = path.read_text()
    keep_token(path)
    assert path.read_text() == token


def test_processes_that_start_together_keep_the_same_token(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME

    def kept(_number: int) -> str:
        keep_token(path)
        return path.read_text()

    with ThreadPoolExecutor(8) as threads:
        tokens = set(threads.map(kept, range(64)))
    assert len(tokens) == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["", "\n", "operator", "operator.", "crawler-7.tellno1", "x" * 600, "\xff"])
def test_a_file_without_a_token_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(content, encoding="latin-1")
    path.chmod(0o600)
    with pytest.raises(ValueError, match=r"token|longer|UTF-8") as caught:
        keep_token(path)
    assert "tellno1" not in str(caught.value)
    assert path.read_text(encoding="latin-1") == content


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    keep_token(path)
    path.chmod(0o644)
    with pytest.raises(ValueError, match="its mode is 0644"):
        keep_token(path)


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be opened: Is a directory"):
        keep_token(tmp_path)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be written: "):
        keep_token(tmp_path / "file" / FILE_NAME)


def test_without_a_path_the_file_is_temporary() -> None:
    with token_file(None) as path:
        assert path is not None
        assert load_token(path).by_id
    assert not path.parent.exists()


def test_without_a_directory_for_temporary_files_there_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: object) -> None:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("app.auth.operator_token.TemporaryDirectory", refuse)
    with token_file(None) as path:
        assert path is None
