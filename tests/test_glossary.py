"""docs/glossary.md and the code name the same metrics, settings and fields, and it names no class."""

import json
import re

from prometheus_client.parser import text_string_to_metric_families

from app.main.settings import Settings
from app.observability.metrics import Metrics, ServiceState
from tests.glossary import READ_ELSEWHERE, ROOT, kinds, terms


def test_glossary_defines_every_metric() -> None:
    metrics = Metrics(lambda: ServiceState(False, True, 0, 0, {}))
    families = text_string_to_metric_families(metrics.text().decode())
    names = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    ours = {name for name in names if name.startswith("robots_") and not name.endswith("_created")}
    assert terms("metric") == ours


def test_glossary_defines_every_setting() -> None:
    assert terms("setting") == {name.upper() for name in Settings.model_fields} | READ_ELSEWHERE


def test_glossary_defines_every_field_of_the_api() -> None:
    schemas = json.loads((ROOT / "openapi.json").read_text())["components"]["schemas"]
    assert terms("field") == {name for schema in schemas.values() for name in schema.get("properties", ())}


def test_glossary_names_no_class() -> None:
    sources = [path for top in ("app", "core", "clients/python") for path in (ROOT / top).rglob("*.py")]
    classes = {name for path in sources for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)}
    assert len(classes) > 100
    quoted = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "glossary.md").read_text()))
    assert quoted & classes == set()
    assert set(kinds()) - {"kind"} == {"concept", "field", "setting", "metric"}
