"""Every value of the chart changes what is rendered, and two releases fit in a namespace."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.render import CHART, TRIAL, Refused, leaves, objects, rendered

EVERY = Path(__file__).with_name("every-value.yaml")
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = leaves(yaml.safe_load((CHART / "values.yaml").read_text()), SCHEMA)
VALUES = yaml.safe_load(EVERY.read_text())
SET = leaves(VALUES, SCHEMA)
SWITCHES = {
    "image.digest": f"sha256:{'0' * 64}",
    "allowUnauthenticated": "false",
    "valkey.enabled": "false",
    "valkey.image": "images.example.com/valkey:9",
    "valkey.resources": '{"limits": {"memory": "1Gi"}}',
    "autoscaling.enabled": "false",
    "replicaCount": "7",
    "podDisruptionBudget.enabled": "false",
    "serviceAccount.create": "false",
    "networkPolicy.enabled": "false",
    "monitoring.rules": "false",
}
"""Values that others have no effect with, or that do not fit with them: those are changed alone."""

REFERENCES = ("metadata", "configMap", "configMapRef", "service", "scaleTargetRef")
OTHERS = {"replicaCount": ("autoscaling.enabled=false",), "monitoring.rules": ("monitoring.operator=true",)}


def names() -> list[str]:
    return sorted(DEFAULTS.keys() - SWITCHES.keys())


def test_the_file_sets_every_value() -> None:
    assert SET.keys() | SWITCHES.keys() == DEFAULTS.keys()
    assert {name for name in names() if SET.get(name) == DEFAULTS[name]} == set()


@pytest.mark.parametrize("name", names())
def test_each_value_has_an_effect(name: str, tmp_path: Path) -> None:
    values = deepcopy(VALUES)
    *path, last = name.split(".")
    inner = values
    for part in path:
        inner = inner[part]
    del inner[last]
    others = tmp_path / "values.json"
    others.write_text(json.dumps(values))
    try:
        default = rendered(files=(str(others),))
    except Refused:
        return  # it is required beside the others
    assert default != rendered(files=(str(EVERY),))


@pytest.mark.parametrize("name", SWITCHES)
def test_each_switch_has_an_effect(name: str) -> None:
    others = (*TRIAL, *OTHERS.get(name, ()))
    try:
        switched = rendered(*others, f"{name}={SWITCHES[name]}")
    except Refused:
        return
    assert switched != rendered(*others)


def names_in(value: Any, inside: str = "") -> set[str]:
    """The names of objects, and of those that they refer to."""
    if isinstance(value, list):
        return set().union(*(names_in(item, inside) for item in value))
    if not isinstance(value, dict):
        return set()
    found = {value["name"]} if inside in REFERENCES and "name" in value else set()
    found |= {value["serviceAccountName"]} if "serviceAccountName" in value else set()
    return found.union(*(names_in(item, name) for name, item in value.items()))


def test_two_releases_share_a_namespace() -> None:
    every = ("monitoring.operator=true", "monitoring.dashboard=true")
    one, other = (objects(*TRIAL, *every, release=release) for release in ("robots-decisions", "night"))
    assert one.keys().isdisjoint(other.keys())
    assert {name for _, name in one} >= names_in(list(one.values()))
    assert {name for _, name in other} >= names_in(list(other.values()))
    for found, release in ((one, "robots-decisions"), (other, "night")):
        chosen = json.dumps(list(found.values()))
        assert chosen.count('"app.kubernetes.io/instance"') == chosen.count(
            f'"app.kubernetes.io/instance": "{release}"'
        )


def selectors(value: Any) -> list[dict[str, str]]:
    """All `matchLabels`, and the selectors of Services."""
    if isinstance(value, list):
        return [found for item in value for found in selectors(item)]
    if not isinstance(value, dict):
        return []
    own = [value["matchLabels"]] if "matchLabels" in value else []
    return own + [found for item in value.values() for found in selectors(item)]


def test_every_selector_of_pods_of_the_release_names_it() -> None:
    found = objects(*TRIAL, "monitoring.operator=true", release="night")
    inside = [labels for labels in selectors(list(found.values())) if "app.kubernetes.io/component" in labels]
    inside += [document["spec"]["selector"] for (kind, _), document in found.items() if kind == "Service"]
    assert len(inside) > 10
    for labels in inside:
        assert labels["app.kubernetes.io/instance"] == "night"
        assert labels.keys() == {f"app.kubernetes.io/{name}" for name in ("name", "instance", "component")}


def test_alerts_link_to_the_page_that_is_set() -> None:
    page = "https://docs.example.com/reference/alerts.html"
    found = objects(*TRIAL, "monitoring.operator=true", f"monitoring.runbooks={page}")
    [rules] = [document for (kind, _), document in found.items() if kind == "PrometheusRule"]
    alerts = [rule for group in rules["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    links = [rule["annotations"]["runbook_url"] for rule in alerts]
    assert links
    assert all(link.startswith(f"{page}#robots") for link in links)
