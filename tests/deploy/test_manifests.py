"""The files in deploy/ agree with the service. `make check NAME=deploy` checks everything else about them."""

import asyncio
import re
import socket
import subprocess
import sys
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from pathlib import Path

import pytest
import yaml

from app.fetch.guard import PLATFORMS, RANGES
from tests.origins import serve, text

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "robots-decisions"
MONITORED = CHART / "files"
ALERT = re.compile(r"- alert: (\w+)")


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
    assert {"deployment.yaml", "valkey.yaml", "ask.yaml"} <= modes.keys()
    assert {each for found in modes.values() for each in found} == {"0440"}  # the group is the pod's fsGroup
    for pod in ("helm/robots-decisions/values.yaml", "redis/valkey.yaml"):
        assert re.search(r"\bfsGroup: \d", (DEPLOY / pod).read_text()), pod


@pytest.mark.parametrize("within", ["0.0.0.0/0", "2000::/3"])
def test_network_policy_excludes_the_refused_addresses(within: str) -> None:
    policy = (CHART / "templates" / "networkpolicies.yaml").read_text()
    block = policy.partition(f"cidr: {within}\n")[2].partition("- ipBlock")[0].partition("ports:")[0]
    assert re.findall(r"- (\S+/\d+)", block) == covering(within)


@pytest.mark.parametrize("file", ["alerts.yaml", "dashboard.json"])
def test_no_query_depends_on_the_name_of_a_scrape_job(file: str) -> None:
    text = (MONITORED / file).read_text()
    assert re.findall(r"\bjob\b", text.partition("groups:")[2] or text) == []


def test_every_rule_tells_namespaces_apart() -> None:
    groups = yaml.safe_load((MONITORED / "alerts.yaml").read_text())["groups"]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    assert len(rules) > 30
    for rule in rules:
        aggregated = re.findall(r"\b(?:sum|min|max|count|avg)\b(?! over)\s*(by \([^)]*\))?", rule)
        assert all("namespace" in by for by in aggregated), rule
        assert aggregated or "on (namespace" in rule or re.match(r"robots:\w+:ratio_rate", rule), rule


@pytest.mark.parametrize("written", ["- name: {}\n", "        alertname: {}\n", "alertname: {}, exp_alerts: []"])
def test_every_alert_is_tested_both_ways(written: str) -> None:
    tests = Path(__file__).with_name("alerts_test.yaml").read_text()
    for alert in ALERT.findall((MONITORED / "alerts.yaml").read_text()):
        assert written.format(alert) in tests


def test_pods_look_names_up_without_a_search_list() -> None:
    """So the names of stores are complete in the values and in the documentation."""
    deployment = (CHART / "templates" / "deployment.yaml").read_text()
    assert 'name: LOCALDOMAIN\n              value: "."\n' in deployment


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
