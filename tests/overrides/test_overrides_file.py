"""OVERRIDES_FILE as it is read: what an export prints, and errors that name the line, the member and the value."""

import json
import re
from pathlib import Path

import pytest

from app.main.settings import BadSetting, Settings
from app.overrides.override_json import REASON_LIMIT
from app.overrides.overrides_file import read_lines
from app.overrides.redis_overrides import OVERRIDES_LIMIT
from app.overrides.table import Override

GOOD = '{"id": "a", "scope": "a.example", "action": "deny", "reason": "x"}'

FAULTS = {
    "{": "expected a JSON object, and it is '{'",
    "[1]": "expected a JSON object, and it is '[1]'",
    "[" * 100_000: "expected a JSON object, and it is '[[",
    '{"scope": "b", "action": "deny", "reason": "x"}': "id is None: expected a text",
    '{"id": 7, "scope": "b", "action": "deny", "reason": "x"}': "id is 7: expected a text",
    '{"id": "b/c", "scope": "b", "action": "deny", "reason": "x"}': "'b/c' is not an override id",
    '{"id": "audit", "scope": "b", "action": "deny", "reason": "x"}': "'audit' is not an override id",
    '{"id": "b", "scope": "b/c", "action": "deny", "reason": "x"}': "scope is 'b/c': ",
    '{"id": "b", "scope": "b", "action": "close", "reason": "x"}': "action is 'close': expected 'allow'",
    '{"id": "b", "scope": "b", "action": "deny"}': "reason is None: ",
    '{"id": "b", "scope": "b", "action": "delay", "reason": "x"}': "delay is None: the action 'delay' needs it",
    '{"id": "b", "scope": "b", "action": "deny", "reason": "x", "delay": 3}': "delay is 3: it belongs to ",
    '{"id": "b", "scope": "b", "action": "deny", "reason": "x", "agent": []}': "Unknown member 'agent'. Did you mean ",
    '{"id": "b", "scope": "b", "action": "deny", "reason": "x", "expires_at": 3}': "expires_at is 3: expected an ",
    '{"id": "b", "scope": "b", "action": "deny", "reason": "x", "expires_at": "May"}': "expires_at is 'May': expected",
    GOOD: "id is 'a', which line 1 has, too",
}


@pytest.mark.parametrize("line", FAULTS)
def test_an_error_names_the_line_the_member_and_the_value(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 3: ") as raised:
        read_lines(f"{GOOD}\n\n{line}\n")
    assert str(raised.value).startswith(f"line 3: {FAULTS[line]}")
    assert len(str(raised.value)) < REASON_LIMIT


def test_a_line_is_read_as_it_is_exported() -> None:
    record = {
        "id": "a",
        "scope": "https://a.example",
        "action": "deny",
        "reason": "They asked us to.",
        "agents": ["ExampleBot"],
        "robots": None,
        "delay": None,
        "budget": None,
        "expires_at": "2026-11-21T18:30:00Z",
        "shadow": True,
        "expired": False,
        "updated_at": "2026-11-20T18:30:00Z",
        "updated_by": "operator",
        "source": "api",
    }
    found = read_lines(json.dumps(record) + "\r\n")["a"]
    assert (found.scope_text, found.agents, found.reason) == ("https://a.example", ("examplebot",), record["reason"])
    assert (found.expires_at, found.shadow, found.source) == (1_795_285_800.0, True, "file")


def test_a_file_may_be_empty() -> None:
    assert read_lines("") == {}
    only = Override("a", "a.example", (), "deny", "x", None, shadow=False, source="file")
    assert read_lines(f"\n{GOOD}\n \n") == {"a": only}


def test_a_file_has_as_many_overrides_as_the_store_may_have() -> None:
    lines = [GOOD.replace('"a"', f'"a-{number}"') for number in range(OVERRIDES_LIMIT + 1)]
    assert len(read_lines("\n".join(lines[1:]))) == OVERRIDES_LIMIT
    with pytest.raises(ValueError, match="it has 2001 overrides; at most 2000 are read"):
        read_lines("\n".join(lines))


@pytest.mark.parametrize("line", FAULTS)
def test_a_bad_file_stops_the_start_with_its_name_and_its_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "overrides.jsonl"
    file.write_text(f"{GOOD}\n\n{line}\n")
    monkeypatch.setenv("OVERRIDES_FILE", str(file))
    with pytest.raises(BadSetting, match=r"OVERRIDES_FILE=.*overrides.jsonl is invalid: line 3: ") as raised:
        Settings.read()
    assert re.search(r"[^.?][.?]\Z", str(raised.value))
    file.write_text(GOOD)
    assert Settings.read().overrides_file == file
