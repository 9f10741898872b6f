"""docs/glossary.md and the code name the same metrics, settings and fields."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from app.observability.metrics import Metrics, State
from app.settings import Settings

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"\| `?([^`|]+?)`?(?: \([^|]*\))? \| (\w+) \| (.+) \|")
READ_ELSEWHERE = {"SECRETS_DIR"}
"""Settings that say where settings are read from, so they are not fields of Settings."""


def terms(kind: str) -> set[str]:
    """The terms of one kind that the glossary defines."""
    lines = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    rows = [match for match in map(ROW.fullmatch, lines) if match]
    assert len(rows) > 300
    return {term for term, found, _ in (row.groups() for row in rows) if found == kind}


def test_glossary_defines_every_metric() -> None:
    metrics = Metrics(lambda: State(False, True, 0, 0, {}))
    families = text_string_to_metric_families(metrics.text().decode())
    names = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    ours = {name for name in names if name.startswith("robots_") and not name.endswith("_created")}
    assert terms("metric") == ours


def test_glossary_defines_every_setting() -> None:
    assert terms("setting") == {name.upper() for name in Settings.model_fields} | READ_ELSEWHERE


def test_glossary_defines_every_field_of_the_api() -> None:
    schemas = json.loads((ROOT / "openapi.json").read_text())["components"]["schemas"]
    assert terms("field") == {name for schema in schemas.values() for name in schema.get("properties", ())}
