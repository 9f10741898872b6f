"""Settings from the environment; errors name invalid values."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from app.main.settings import BadSetting, Settings


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def test_by_default_it_serves_loopback_and_fetches_public_addresses() -> None:
    settings = Settings.read()
    assert (settings.host, settings.port, settings.redis_url) == ("127.0.0.1", 8080, None)
    assert (settings.allow_addresses, settings.allow_ports, settings.on_forbidden) == ((), frozenset(), "allow")
    assert settings.user_agent.startswith("RobotsDecisions/")


def test_lists_are_separated_by_commas_or_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOW_ADDRESSES", "127.0.0.0/8, ::1 fd00::/8")
    monkeypatch.setenv("ALLOW_PORTS", "81,8001")
    settings = Settings.read()
    assert settings.allow_addresses == tuple(map(ip_network, ("127.0.0.0/8", "::1/128", "fd00::/8")))
    assert settings.allow_ports == frozenset({81, 8001})
    monkeypatch.setenv("ALLOW_PORTS", "*")
    assert Settings.read().allow_ports == "*"
    monkeypatch.setenv("PURPOSES", "ai-train, search ai-train")
    assert Settings.read().purposes == ("search", "ai-train")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"),
        ("PORT", "65536"),
        ("WORKERS", "0"),
        ("ALLOW_ADDRESSES", "10.0.0.1/8"),
        ("ALLOW_ADDRESSES", "localhost"),
        ("ALLOW_PORTS", "80,*"),
        ("ALLOW_PORTS", "99999"),
        ("ON_FORBIDDEN", "maybe"),
        ("FETCH_TIMEOUT", "0"),
        ("FETCH_PROXY", "proxy.example:3128"),
        ("PURPOSES", "search,training"),
        ("ENFORCE_PURPOSES", "perhaps"),
        ("MEMORY_BYTES", "1"),
        ("USER_AGENT", "a\nb"),
        ("RECHECK_MODEL", "weekly"),
        ("PACE_FLOOR", "-1"),
        ("PACE_FLOOR", "86401"),
        ("PACE_CAP", "0.5"),
        ("PACE_INSTANCES", "0"),
        ("WATCH_SECONDS", "0"),
        ("KEEP_ALIVE_SECONDS", "0"),
        ("MAX_CONNECTION_AGE", "0.5"),
        ("RECHECK_FILE", "/nowhere/recheck.toml"),
        ("AGENTS_FILE", "/nowhere/agents.toml"),
        ("API_KEYS_FILE", "/nowhere/keys.toml"),
    ],
)
def test_invalid_input_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=f"{name}="):
        Settings.read()


def test_an_invalid_recheck_file_is_named_with_its_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "recheck.toml"
    table.write_text('"example.com" = {delay = "soon"}')
    monkeypatch.setenv("RECHECK_FILE", str(table))
    with pytest.raises(BadSetting, match=r"RECHECK_FILE=.*recheck.toml is invalid: .*'example.com' has delay = 'soon'"):
        Settings.read()
    table.write_text('"example.com" = {delay = "1d"}')
    assert Settings.read().recheck_file == table


def test_an_invalid_agents_file_is_named_with_its_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text('agents.ExampleBot.dialect = "latin"')
    monkeypatch.setenv("AGENTS_FILE", str(file))
    message = r"AGENTS_FILE=.*agents.toml is invalid: the agent 'ExampleBot' has dialect = 'latin'"
    with pytest.raises(BadSetting, match=message):
        Settings.read()
    file.write_text("[agents.ExampleBot]")
    assert Settings.read().agents_file == file


def test_secret_is_read_from_the_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "redis_url").write_text("redis://user:password@host\n")
    (tmp_path / "ca.crt").write_text("no setting")
    monkeypatch.setenv("SECRETS_DIR", str(tmp_path))
    assert Settings.read().redis_url == "redis://user:password@host"
    monkeypatch.setenv("REDIS_URL", "redis://other")
    assert Settings.read().redis_url == "redis://other"


def test_missing_secrets_directory_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRETS_DIR", str(tmp_path / "none"))
    with pytest.raises(BadSetting, match=r"SECRETS_DIR=.*none is not a directory"):
        Settings.read()


def test_short_permit_secret_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERMIT_SECRET", "hunter2")
    with pytest.raises(BadSetting, match="PERMIT_SECRET is invalid: use at least 32 characters") as raised:
        Settings.read()
    assert "hunter2" not in str(raised.value)
    monkeypatch.setenv("PERMIT_SECRET", "hunter2" * 5)
    assert "hunter2" not in repr(Settings.read())


@pytest.mark.parametrize("url", ["http://fleet:secret@proxy.example", "socks5://fleet:secret@h:1", "secret@h:3128"])
def test_a_bad_proxy_is_refused_without_its_credentials(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FETCH_PROXY", url)
    with pytest.raises(BadSetting, match=r"^FETCH_PROXY is invalid: ") as refused:
        Settings.read()
    assert "secret" not in str(refused.value)
    assert "fleet" not in str(refused.value)


def test_proxies_of_other_programs_are_named_if_fetches_use_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    assert Settings.read().unused_proxies == ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"]
    monkeypatch.setenv("FETCH_PROXY", "http://proxy.example:3128")
    assert Settings.read().unused_proxies == []
