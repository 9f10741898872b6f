"""A misspelt setting stops the start and is told its right name; the variables of other programs do not."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.main.setting_names import misspelt
from app.main.settings import BadSetting, Settings
from tests.cli.command import run
from tests.glossary import READ_ELSEWHERE

SETTINGS = {name.upper() for name in Settings.model_fields} | READ_ELSEWHERE

OTHERS = (Path(__file__).parents[1] / "cases" / "variables_of_others.txt").read_text().split()
"""Names that other programs, platforms and shells own."""

SERVICES = [
    "REDIS",
    "VALKEY",
    "ROBOTS_DECISIONS",
    "WORKERS",
    "PACE",
    "ALLOW",
    "HOST",
    "RECHECK",
    "DECISION_LOG",
    "API_KEYS",
]
"""Services of a namespace, for each of which Kubernetes sets variables."""


def links(service: str) -> list[str]:
    ends = ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_6379_TCP"]
    ends += [f"PORT_6379_TCP_{end}" for end in ("ADDR", "PORT", "PROTO")]
    return [f"{service}_{end}" for end in ends]


def misspellings(name: str) -> Iterator[str]:
    for at in range(len(name)):
        yield name[:at] + name[at + 1 :]
        yield name[:at] + name[at] + name[at:]
        yield name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :]
    words = name.split("_")
    for at, word in enumerate(words):
        number = word[:-1] if word.endswith("S") else f"{word}S"
        yield "_".join([*words[:at], number, *words[at + 1 :]])
    yield name.replace("_", "")
    yield name.replace("_", "__")


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_misspelt_setting_is_told_its_right_name(name: str) -> None:
    wrong = {each for each in misspellings(name) if each not in {*SETTINGS, *OTHERS}}
    assert len(wrong) >= 9
    for spelling in (*wrong, *map(str.lower, wrong)):
        assert misspelt([spelling], SETTINGS) == {spelling: f"did you mean {name}?"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PACE_INSTANCE", "did you mean PACE_INSTANCES?"),
        ("REDIS_PASWORD_FILE", "did you mean REDIS_PASSWORD_FILE?"),
        ("ALLOW_ADRESSES", "did you mean ALLOW_ADDRESSES?"),
        ("LOG_FORMATS", "did you mean LOG_FORMAT?"),
        ("RECHECKFILE", "did you mean RECHECK_FILE?"),
        ("OPERATOR_TOKN_FIL", "did you mean OPERATOR_TOKEN_FILE?"),
        ("RECHECK_MODE", "did you mean RECHECK_MODEL?"),
        (
            "DECISION_LOG_FORMAT",
            (
                "the settings of that prefix are DECISION_LOG, DECISION_LOG_KEY_FILE, DECISION_LOG_SHARE, "
                "DECISION_LOG_URL."
            ),
        ),
        ("PACE_XYZ", "the settings of that prefix are PACE_BY, PACE_CAP, PACE_FLOOR, PACE_INSTANCES, PACE_LATENCY."),
    ],
)
def test_start_stops_with_the_right_name(monkeypatch: pytest.MonkeyPatch, name: str, hint: str) -> None:
    monkeypatch.setenv(name, "3")
    with pytest.raises(BadSetting, match=re.escape(f"{name} is not a setting: {hint}")):
        Settings.read()


async def test_command_for_settings_says_the_same() -> None:
    result = await run("settings", settings={"PACE_INSTANCE": "3"})
    assert (result.code, result.out) == (3, "")
    assert result.err == "cannot start: PACE_INSTANCE is not a setting: did you mean PACE_INSTANCES?\n"


def test_names_of_others_do_not_stop_the_start() -> None:
    assert misspelt(OTHERS, SETTINGS) == {}
    for name in OTHERS:
        assert misspelt([name], SETTINGS) == {}


@pytest.mark.parametrize("service", SERVICES)
def test_the_variables_of_kubernetes_services_do_not_stop_the_start(service: str) -> None:
    assert misspelt(links(service), SETTINGS) == {}


def test_settings_themselves_are_known_in_any_case() -> None:
    assert misspelt([*SETTINGS, *map(str.lower, SETTINGS)], SETTINGS) == {}


def test_misspelt_file_of_a_secret_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ca.crt", "tls.key", "redis-password", "api-keys", "..data", "redis_ulr"):
        (tmp_path / name).write_text("x")
    monkeypatch.setenv("SECRETS_DIR", str(tmp_path))
    with pytest.raises(
        BadSetting, match=re.escape(f"{tmp_path}/redis_ulr is not a setting: did you mean REDIS_URL?")
    ) as it:
        Settings.read()
    assert str(it.value).count("is not a setting") == 1
