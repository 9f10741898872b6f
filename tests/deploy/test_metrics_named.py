"""What a dashboard, an alert or the autoscaler goes by is what the service counts."""

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
    """The names of the series that /metrics has, or will have once something was counted."""
    async with running(store_url) as service:
        text = (await service.client.get("/metrics")).text
    return {
        family.name + suffix
        for family in text_string_to_metric_families(text)
        for suffix in SAMPLES.get(family.type, ())
    }


@pytest.mark.parametrize("file", ["adapter.yaml", "alerts.yaml", "alerts_test.yaml", "dashboard.json"])
async def test_every_metric_that_is_named_is_counted(store_url: str, file: str) -> None:
    named = set(NAME.findall((MONITORING / file).read_text())) - {MADE_BY_THE_ADAPTER}
    assert named
    assert named <= await counted(store_url)


def test_the_autoscaler_goes_by_the_metric_that_the_adapter_makes() -> None:
    autoscaler = MONITORING.parent / "base" / "horizontalpodautoscaler.yaml"
    assert f"as: {MADE_BY_THE_ADAPTER}\n" in (MONITORING / "adapter.yaml").read_text()
    assert f"name: {MADE_BY_THE_ADAPTER}\n" in autoscaler.read_text()
