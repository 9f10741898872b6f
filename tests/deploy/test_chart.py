"""The Helm chart: `make deploy-check` renders it and compares it with the overlays by tests.deploy.chart."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import __version__
from app.main.settings import Settings
from tests.deploy.chart import differences

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy" / "helm" / "robots-decisions"
POD = """
kind: Deployment
metadata: {name: a, namespace: NAMESPACE, labels: {LABELS}}
spec: {volumes: VOLUMES, annotations: {ANNOTATIONS}, args: ARGS, configMap: NAME}
"""
AS_KUSTOMIZE = {
    "NAMESPACE": "robots",
    "LABELS": "part: x",
    "VOLUMES": "[{name: b}, {name: a}]",
    "ANNOTATIONS": "",
    "ARGS": "[b, a]",
    "NAME": "robots-decisions-agents-abcdef1234",
}
AS_HELM = {
    **AS_KUSTOMIZE,
    "NAMESPACE": "null",
    "LABELS": "part: x, helm.sh/chart: c-1",
    "VOLUMES": "[{name: a}, {name: b}]",
    "ANNOTATIONS": "checksum/config: abc",
    "NAME": "robots-decisions-agents",
}


def rendered(parts: dict[str, str]) -> str:
    text = POD
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def test_what_only_one_tool_adds_is_no_difference() -> None:
    namespace = "kind: Namespace\nmetadata: {name: robots}\n---\n"
    assert differences(namespace + rendered(AS_KUSTOMIZE), rendered(AS_HELM)) == []


@pytest.mark.parametrize(
    "part",
    [
        {"LABELS": "part: y"},
        {"VOLUMES": "[{name: a}]"},
        {"ANNOTATIONS": "prometheus.io/scrape: yes"},
        {"ARGS": "[a, b]"},
        {"NAME": "robots-decisions-recheck"},
    ],
)
def test_everything_else_is_a_difference(part: dict[str, str]) -> None:
    assert differences(rendered(AS_KUSTOMIZE), rendered({**AS_HELM, **part}))


def test_a_missing_object_is_a_difference() -> None:
    assert differences(rendered(AS_KUSTOMIZE), "")


def load(name: str) -> Any:
    return yaml.safe_load((CHART / name).read_text())


def test_the_chart_has_the_version_of_the_service() -> None:
    chart = load("Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize("file", ["values.yaml", "values-dev.yaml", "values-prod.yaml"])
def test_every_setting_in_the_values_exists(file: str) -> None:
    assert load(file).get("settings", {}).keys() <= {name.upper() for name in Settings.model_fields}


def leaves(values: dict[str, Any], schema: dict[str, Any], prefix: str = "") -> set[str]:
    """The values by their dotted names, as far as the schema names the members of an object."""
    assert schema["additionalProperties"] is False
    assert values.keys() == schema["properties"].keys() - {"global"}
    found: set[str] = set()
    for name, value in values.items():
        inner = schema["properties"][name]
        nested = inner.get("additionalProperties") is False
        found |= leaves(value, inner, f"{prefix}{name}.") if nested else {prefix + name}
    return found


def test_every_value_has_a_type_and_is_documented() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    table = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text().partition("| value |")[2].partition("\n\n")[0]
    documented = {name for row in table.splitlines()[1:] for name in re.findall(r"`([a-zA-Z.]+)`", row.split("|")[1])}
    assert documented == leaves(load("values.yaml"), schema)


def test_the_files_that_templates_read_are_there() -> None:
    read = {
        name
        for template in (CHART / "templates").rglob("*.*")
        for name in re.findall(r'Files\.Get "([^"]+)"', template.read_text())
    }
    assert read == {f"files/{path.name}" for path in (CHART / "files").iterdir()}
    for name in read:
        copy = CHART / name
        originals = [path for path in (ROOT / "deploy").rglob(copy.name) if CHART not in path.parents]
        assert copy.read_bytes() in [path.read_bytes() for path in originals], f"{name} is outdated: `make generate`"
