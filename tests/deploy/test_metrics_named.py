"""Every metric that the dashboard, an alert or the autoscaler uses exists."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api.service import running

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
CHART = DEPLOY / "helm" / "robots-decisions"
FILES = (
    DEPLOY / "monitoring" / "adapter-rule.yaml",
    CHART / "files" / "alerts.yaml",
    CHART / "files" / "dashboard.json",
    Path(__file__).with_name("alerts_test.yaml"),
)
TEXTS = {file.name: file.read_text() for file in FILES}
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


@pytest.mark.parametrize("name", TEXTS)
async def test_every_named_metric_exists(store_url: str, name: str) -> None:
    named = set(NAME.findall(TEXTS[name])) - {MADE_BY_THE_ADAPTER}
    assert named
    assert named <= await counted(store_url)


def test_autoscaler_uses_the_adapters_metric() -> None:
    assert f"as: {MADE_BY_THE_ADAPTER}\n" in TEXTS["adapter-rule.yaml"]
    assert f"name: {MADE_BY_THE_ADAPTER}\n" in (CHART / "templates" / "horizontalpodautoscaler.yaml").read_text()
