"""The Helm chart as Helm renders it; each set of values once."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent.parent.parent / "deploy" / "helm" / "robots-decisions"
NAMESPACE = "robots-dev"
TRIAL = ("valkey.enabled=true", "allowUnauthenticated=true")
"""The fewest values with which a release starts."""


class Refused(ValueError):
    """Helm renders nothing; the text says why."""


class Loader(yaml.CSafeLoader):  # type: ignore[misc]
    """Refuses a key that is there twice, as kustomize and Flux do."""


def mapping(loader: Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    """The mapping at a node. Raises ValueError for a key that is there twice."""
    found: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    if len(found) != len(node.value):
        raise ValueError(f"a key of {sorted(found)} is there twice {node.start_mark}")
    return found


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


@cache
def rendered(*values: str, release: str = "robots-decisions", files: tuple[str, ...] = (), chart: Path = CHART) -> str:
    """What `helm template` prints with these values (`--set-json`, or `--set`). Raises Refused."""
    beside = Path(sys.executable).with_name("helm")
    helm = str(beside) if beside.exists() else shutil.which("helm")
    assert helm is not None, "install Helm 3"
    command = [helm, "template", release, str(chart), "--namespace", NAMESPACE, "--kube-version", "1.34.0"]
    for file in files:
        command += ["--values", file]
    for value in values:
        command += ["--set-json" if value.partition("=")[2][:1] in '[{"' else "--set", value]
    quick = {**os.environ, "GOGC": "off"}  # a fifth of its CPU time would go into collecting garbage
    done = subprocess.run(command, env=quick, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout


def objects(*values: str, **options: Any) -> dict[tuple[str, str], Any]:
    """The rendered objects by kind and name."""
    documents = [document for document in yaml.load_all(rendered(*values, **options), Loader) if document is not None]
    found = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(found) == len(documents), "two objects have one name"
    return found


def leaves(values: dict[str, Any], schema: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values by their dotted names, as far as the schema names the members of an object."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        inner = schema["properties"].get(name, {})
        nested = inner.get("additionalProperties") is False
        found |= leaves(value, inner, f"{prefix}{name}.") if nested else {prefix + name: value}
    return found
