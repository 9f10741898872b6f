"""API keys: reading the file, finding a key, and invalid files."""

import hashlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.auth.keys import KEY_LIMIT, ApiKey, Limit, Scope, load_keys, new_key, read_keys
from robots_core.purposes.policy import PurposePolicy

DIGEST = "ab" * 32


def test_only_a_new_keys_own_line_admits_it() -> None:
    key, line = new_key("crawler-7")
    keys = read_keys(line)
    found = keys.find(key.encode())
    assert found is not None
    assert (found.id, found.scopes, found.limit) == ("crawler-7", frozenset({Scope.READ}), None)
    assert key not in line
    other, _ = new_key("crawler-7")
    wrong = [other, key[:-1], key + "x", key.upper(), "crawler-7", "crawler-7.", "", f"crawler-8.{key}", line]
    assert [keys.find(text.encode()) for text in wrong] == [None] * len(wrong)
    assert keys.find(b"\xff" + key.encode()) is None


def test_a_key_over_the_limit_is_not_hashed() -> None:
    key = "a." + "x" * (KEY_LIMIT - 1)
    keys = read_keys(f'[a]\nsha256 = "{hashlib.sha256(key.encode()).hexdigest()}"\nscopes = ["read"]')
    assert keys.find(key.encode()) is None


def test_a_digest_sent_as_a_key_is_unknown() -> None:
    keys = read_keys(f'[a]\nsha256 = "{DIGEST}"\nscopes = ["admin"]')
    assert keys.find(DIGEST.encode()) is keys.find(f"a.{DIGEST}".encode()) is None


@pytest.mark.parametrize("own", Scope)
def test_a_scope_includes_those_before_it(own: Scope) -> None:
    key = ApiKey("a", DIGEST, frozenset({own}), None)
    assert [scope for scope in Scope if key.may(scope)] == [*Scope][: [*Scope].index(own) + 1]


def test_a_limit_has_a_burst_of_its_own_or_its_requests() -> None:
    text = f"""
        [a]
        sha256 = "{DIGEST}"
        scopes = ["read", "admin"]
        limit = {{requests = 600, seconds = 60}}
        [b]
        sha256 = "{"cd" * 32}"
        scopes = ["read"]
        limit = {{requests = 600, seconds = 60, burst = 10}}
    """
    keys = read_keys(text).by_id
    assert keys["a"].limit == Limit(600, 60, 600)
    assert keys["b"].limit == Limit(600, 60, 10)
    assert Limit(600, 60, 10).interval == 0.1


GOOD = f'sha256 = "{DIGEST}"\nscopes = ["read"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no key"),
        ("[a b]", "not TOML.*line 1"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = 1", "'a' has 1, where a table of sha256, scopes, limit"),
        (f'["a.b"]\n{GOOD}', "'a.b' is not a valid key id"),
        (f'[""]\n{GOOD}', "'' is not a valid key id"),
        (f'["ä"]\n{GOOD}', "'ä' is not a valid key id"),
        (f"[a]\n{GOOD}key = 1", "'a' has an unknown field 'key'; the fields are sha256"),
        ('[a]\nscopes = ["read"]', "'a' has no sha256"),
        ('[a]\nsha256 = "a.secret"\nscopes = ["read"]', "'a' has an invalid sha256; expected 64 digits"),
        (f'[a]\nsha256 = "{DIGEST.upper()}"\nscopes = ["read"]', "'a' has an invalid sha256; expected 64 digits"),
        (f'[a]\nsha256 = "{DIGEST}"', "'a' has no scopes"),
        (f'[a]\nsha256 = "{DIGEST}"\nscopes = []', r"'a' has scopes = \[\]"),
        (
            f'[a]\nsha256 = "{DIGEST}"\nscopes = ["write"]',
            r"'a' has scopes.0 = 'write'; expected 'read', 'ingest' or 'admin'",
        ),
        (f'[a]\nsha256 = "{DIGEST}"\nscopes = [["read"]]', "'a' has scopes"),
        (f"[a]\n{GOOD}limit = 7", "'a' has limit = 7, where a table is expected"),
        (f"[a]\n{GOOD}limit = {{per = 1}}", "'a' has an unknown field 'limit.per'"),
        (f"[a]\n{GOOD}limit = {{requests = 0, seconds = 1}}", "'a' has limit.requests = 0"),
        (f"[a]\n{GOOD}limit = {{requests = 1}}", "'a' has no limit.seconds"),
        (f"[a]\n{GOOD}limit = {{requests = true, seconds = 1}}", "limit.requests = True"),
        (f"[a]\n{GOOD}limit = {{requests = 1.5, seconds = 1}}", "limit.requests = 1.5"),
        (f"[a]\n{GOOD}limit = {{requests = 1, seconds = 86401}}", "limit.seconds = 86401"),
        (f"[a]\n{GOOD}limit = {{requests = 1, seconds = 1, burst = 0}}", "limit.burst = 0"),
        (f"[a]\n{GOOD}limit = {{requests = 0x{'f' * 5000}, seconds = 1}}", "limit.requests = a int"),
        (f'[a]\n{GOOD}purposes = ["train"]', "'a' has purposes.0 = 'train'; expected 'search', 'ai-input'"),
        (f'[a]\n{GOOD}purposes = "search"', "'a' has purposes = 'search'; expected a valid list"),
        (f"[a]\n{GOOD}purposes = [7]", r"'a' has purposes.0 = 7; expected 'search'"),
        (f'[a]\n{GOOD}enforce = "yes"', "'a' has enforce = 'yes'; expected a valid boolean"),
        (f"[a]\n{GOOD}[b]\n{GOOD}", "'a' and 'b' have the same sha256"),
    ],
)
def test_errors_name_the_key_and_the_field(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_keys(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        ("", PurposePolicy(("search",), enforce=True)),
        ("enforce = false", PurposePolicy(("search",))),
        ('purposes = ["ai-train", "ai-input"]', PurposePolicy(("ai-input", "ai-train"), enforce=True)),
        ("purposes = []\nenforce = false", PurposePolicy()),
    ],
)
def test_key_leaves_to_the_settings_what_it_does_not_say(fields: str, policy: PurposePolicy) -> None:
    key = read_keys(f"[a]\n{GOOD}{fields}").by_id["a"]
    assert key.policy(PurposePolicy(("search",), enforce=True)) == policy


@given(st.text(max_size=60))
def test_any_text_is_read_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert read_keys(text).by_id
    with suppress(ValueError):
        assert new_key(text)[0].startswith(text)


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o604, 0o602, 0o620])
def test_a_file_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(new_key("crawler-7")[1])
    path.chmod(mode)
    with pytest.raises(ValueError, match=f"its mode is {mode:04o}, so other users .*chmod 600"):
        load_keys(path)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o440, 0o640])
def test_a_file_that_the_group_may_read_is_read(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.toml"  # as Kubernetes mounts a secret: of root, and readable by fsGroup
    path.write_text(new_key("crawler-7")[1])
    path.chmod(mode)
    assert "crawler-7" in load_keys(path).by_id


@pytest.mark.parametrize(
    ("data", "message"), [(b"a = \xff", "not UTF-8"), (b"#" * (4 * 1024 * 1024 + 1), "longer than")]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        load_keys(path)
    with pytest.raises(ValueError, match="cannot be opened"):
        load_keys(tmp_path)
