"""What can be said of the Helm chart without rendering it, as tests/helm and `make check NAME=deploy` do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import __version__
from app.main.settings import Settings
from tests.deploy.chart_readme import comments, readme

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy" / "helm" / "robots-decisions"


def load(name: str) -> Any:
    return yaml.safe_load((CHART / name).read_text())


def test_the_chart_has_the_version_of_the_service() -> None:
    chart = load("Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize("file", [path.name for path in CHART.glob("values*.yaml")])
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


def test_every_value_has_a_type_and_a_comment() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert comments((CHART / "values.yaml").read_text()).keys() == leaves(load("values.yaml"), schema)


def test_the_readme_has_the_comments_of_the_values() -> None:
    assert (CHART / "README.md").read_text() == readme(), "make generate"


def test_a_comment_goes_on_until_its_value() -> None:
    text = "# no comment of a value\n\na:\n  # -- one\n  # two\n  b: 1 # three\n  # four\n  c: 2\n# -- five\nd: {}\n"
    assert comments(text) == {"a.b": "one two", "d": "five"}


def test_the_files_that_templates_read_are_there() -> None:
    read = {
        name
        for template in (CHART / "templates").rglob("*.*")
        for name in re.findall(r'Files\.Get "([^"]+)"', template.read_text())
    }
    assert read == {f"files/{path.name}" for path in (CHART / "files").iterdir()}
