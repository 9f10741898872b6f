"""The files in deploy/ agree with the service. `make deploy-check` checks everything else about them."""

import asyncio
import re
import socket
import subprocess
import sys
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from pathlib import Path

import pytest
import yaml

from app.cache.recheck_file import load
from app.fetch.guard import PLATFORMS, RANGES
from app.main.settings import Settings
from tests.origins import serve, text

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
NO_FIELD = {"SECRETS_DIR"}  # where other settings are read from
ALERT = re.compile(r"- alert: (\w+)")
SETTING = re.compile(r"^ *(?:- )?([A-Z][A-Z_]+)[=:]", re.MULTILINE)


def covering(within: str) -> list[str]:
    """The fewest networks that cover the refused addresses in that range."""
    fence = ip_network(within)
    inside = [row.network for row in (*RANGES, *PLATFORMS) if row.network.version == fence.version]
    first, last = int(fence[0]), int(fence[-1])
    networks = [network for network in inside if first <= int(network[0]) <= last]
    if isinstance(fence, IPv4Network):
        return [str(network) for network in collapse_addresses(n for n in networks if isinstance(n, IPv4Network))]
    return [str(network) for network in collapse_addresses(n for n in networks if isinstance(n, IPv6Network))]


def test_every_mounted_secret_has_a_mode_that_the_service_accepts() -> None:
    mode = re.compile(r"secretName: [^,\n]+(?:, |\n +)defaultMode: (\d+)")
    modes = {}
    for path in sorted(DEPLOY.rglob("*.yaml")):
        if mounted := len(re.findall(r"\bsecret:(?:\n| \{)", text := path.read_text())):
            modes[path.name] = mode.findall(text)
            assert len(modes[path.name]) == mounted, path
    assert {"secrets.yaml", "deployment.yaml", "valkey.yaml"} <= modes.keys()
    assert {each for found in modes.values() for each in found} == {"0440"}  # the group is the pod's fsGroup
    for pod in ("base/deployment.yaml", "helm/robots-decisions/values.yaml", "redis/valkey.yaml"):
        assert re.search(r"\bfsGroup: \d", (DEPLOY / pod).read_text()), pod


@pytest.mark.parametrize("within", ["0.0.0.0/0", "2000::/3"])
def test_network_policy_excludes_the_refused_addresses(within: str) -> None:
    policy = (DEPLOY / "base" / "networkpolicy.yaml").read_text()
    block = policy.partition(f"cidr: {within}\n")[2].partition("- ipBlock")[0].partition("ports:")[0]
    assert re.findall(r"- (\S+/\d+)", block) == covering(within)


def test_prometheusrule_has_the_tested_alerts() -> None:
    rules = (DEPLOY / "monitoring" / "alerts.yaml").read_text()
    indented = "".join(f"  {line}\n" for line in rules.splitlines() if not line.startswith("#"))
    manifest = (DEPLOY / "monitoring" / "prometheusrule.yaml").read_text()
    assert manifest.partition("spec:\n")[2] == indented, "make generate"


@pytest.mark.parametrize("file", ["monitoring/alerts.yaml", "monitoring/dashboard.json"])
def test_no_query_depends_on_the_name_of_a_scrape_job(file: str) -> None:
    assert (
        re.findall(r"\bjob\b", (DEPLOY / file).read_text().partition("groups:")[2] or (DEPLOY / file).read_text()) == []
    )


def test_every_rule_tells_namespaces_apart() -> None:
    groups = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text())["groups"]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    assert len(rules) > 30
    for rule in rules:
        aggregated = re.findall(r"\b(?:sum|min|max|count|avg)\b(?! over)\s*(by \([^)]*\))?", rule)
        assert all("namespace" in by for by in aggregated), rule
        assert aggregated or "on (namespace" in rule or re.match(r"robots:\w+:ratio_rate", rule), rule


@pytest.mark.parametrize("written", ["- name: {}\n", "        alertname: {}\n", "alertname: {}, exp_alerts: []"])
def test_every_alert_is_tested_both_ways(written: str) -> None:
    tests = (DEPLOY / "monitoring" / "alerts_test.yaml").read_text()
    for alert in ALERT.findall((DEPLOY / "monitoring" / "alerts.yaml").read_text()):
        assert written.format(alert) in tests


@pytest.mark.parametrize(
    "file", ["base/settings.env", "overlays/dev/kustomization.yaml", "overlays/prod/kustomization.yaml"]
)
def test_every_setting_in_the_manifests_exists(file: str) -> None:
    named = set(SETTING.findall((DEPLOY / file).read_text()))
    assert named
    assert named - NO_FIELD <= {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize(
    ("settings", "scaling"),
    [
        ("base/settings.env", "base/horizontalpodautoscaler.yaml"),
        ("overlays/dev/kustomization.yaml", "overlays/dev/kustomization.yaml"),
    ],
)
def test_pace_instances_is_the_maximum_of_pods(settings: str, scaling: str) -> None:
    def number(file: str, pattern: str) -> int:
        [found] = re.findall(pattern, (DEPLOY / file).read_text())
        return int(found)

    most = number(scaling, r"maxReplicas(?:, value)?: (\d+)")
    assert number(settings, r"PACE_INSTANCES=(\d+)") == most + number("base/deployment.yaml", r"maxSurge: (\d+)")


def test_settings_of_the_manifests_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for line in (DEPLOY / "base" / "settings.env").read_text().split():
        name, _, value = line.partition("=")
        monkeypatch.setenv(name, re.sub("^/etc/robots/(recheck|agents)", str(DEPLOY / "base"), value))
    settings = Settings.read()
    assert (settings.workers, settings.host, settings.watch_seconds) == (1, "::", 10)
    assert load(DEPLOY / "base" / "recheck.toml").rows == {}


def test_names_of_stores_are_complete() -> None:
    """The pods have an empty search list, so `robots-valkey` alone would not be found."""
    deployment = (DEPLOY / "base" / "deployment.yaml").read_text()
    assert 'name: LOCALDOMAIN\n              value: "."\n' in deployment
    overlay = (DEPLOY / "overlays" / "dev" / "kustomization.yaml").read_text()
    [host] = re.findall(r"REDIS_URL=redis://([^:]+):", overlay)
    assert host.endswith(".svc.cluster.local")


def healthy(port: int) -> bool:
    command = [sys.executable, str(DEPLOY / "image" / "health.py")]
    return subprocess.run(command, env={"PORT": str(port)}, capture_output=True).returncode == 0


@pytest.mark.parametrize(("status", "passes"), [(200, True), (503, False)])
async def test_the_image_is_healthy_while_healthz_says_so(status: int, passes: bool) -> None:
    async with serve(text(status, "{}")) as service:
        assert await asyncio.to_thread(healthy, service.port) is passes
        assert service.requests[0].startswith(b"GET /healthz ")


def test_the_image_is_unhealthy_if_nothing_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert not healthy(bound.getsockname()[1])
