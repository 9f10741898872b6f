"""Every metric that the dashboard, an alert or the autoscaler uses exists."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api.service import running

MONITORING = Path(__file__).parent.parent.parent / "deploy" / "monitoring"
NAME = re.compile(r"\brobots_[a-z0-9_]+")
MADE_BY_THE_ADAPTER = "robots_decisions_per_second"
SAMPLES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
}


async def counted(store_url: str) -> set[str]:
    """The names of all series that /metrics can have."""
    async with running(store_url) as service:
        text = (await service.client.get("/metrics")).text
    return {
        family.name + suffix
        for family in text_string_to_metric_families(text)
        for suffix in SAMPLES.get(family.type, ())
    }


@pytest.mark.parametrize("file", ["../adapter/rule.yaml", "alerts.yaml", "alerts_test.yaml", "dashboard.json"])
async def test_every_named_metric_exists(store_url: str, file: str) -> None:
    named = set(NAME.findall((MONITORING / file).read_text())) - {MADE_BY_THE_ADAPTER}
    assert named
    assert named <= await counted(store_url)


def test_autoscaler_uses_the_adapters_metric() -> None:
    adapter = MONITORING.parent / "adapter"
    assert f"as: {MADE_BY_THE_ADAPTER}\n" in (adapter / "rule.yaml").read_text()
    assert f"name: {MADE_BY_THE_ADAPTER}}}" in (adapter / "kustomization.yaml").read_text()
