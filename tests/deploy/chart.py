"""Exit with 1, and print the differences, unless a chart renders the objects that an overlay does.

python tests/deploy/chart.py overlay.yaml chart.yaml. Not compared: what only one of the two tools adds. That is the
Namespace, which Helm does not manage; Helm's labels, and the name of its release in selectors; its test; and the two
ways in which a change of a ConfigMap rolls the pods, a hash in its name and a checksum in an annotation.
"""

import re
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

import yaml

ADDED_LABELS = (
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "app.kubernetes.io/part-of",
    "helm.sh/chart",
)
CHECKSUM = "checksum/config"
HOOK = "helm.sh/hook"
RELEASE = "app.kubernetes.io/instance"
"""A label that the chart adds wherever it names pods, so that two releases fit in a namespace."""

HASHED = re.compile(r"^(robots-decisions-(?:settings|recheck|agents))-[a-z0-9]{10}$")
UNORDERED = ("volumes", "volumeMounts")
"""Lists whose order has no meaning; their items have names."""


def objects(rendered: str) -> dict[str, Any]:
    """The objects by kind and name, without what is not compared."""
    found: dict[str, Any] = {}
    for document in yaml.safe_load_all(rendered):
        if document is None or document["kind"] == "Namespace":
            continue
        if HOOK in (document["metadata"].get("annotations") or {}):
            continue
        document["metadata"].pop("namespace", None)  # that of the release or the overlay
        cleaned = clean(document)
        key = f"{cleaned['kind']} {cleaned['metadata']['name']}"
        if key in found:
            raise ValueError(f"{key} is there twice")
        found[key] = cleaned
    return found


def clean(value: Any) -> Any:
    """The value without labels and annotations that only one tool adds, and with lists in one order."""
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, str):
        return HASHED.sub(r"\1", value)
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for name, item in value.items():
        if name == RELEASE:
            continue
        cleaned = clean(item)
        if name == "labels":
            cleaned = {label: text for label, text in cleaned.items() if label not in ADDED_LABELS}
        elif name == "annotations":
            cleaned = {label: text for label, text in cleaned.items() if label != CHECKSUM}
        elif name in UNORDERED:
            cleaned.sort(key=lambda entry: entry["name"])
        if cleaned or name not in ("labels", "annotations"):
            kept[name] = cleaned
    return kept


def differences(overlay: str, chart: str) -> list[str]:
    """The lines of a diff; none if the objects are the same."""
    one, other = (yaml.safe_dump(objects(text), width=120).splitlines() for text in (overlay, chart))
    return list(unified_diff(one, other, "overlay", "chart", lineterm=""))


def main() -> int:
    """Compare the two files."""
    overlay, chart = (Path(name).read_text() for name in sys.argv[1:3])
    found = differences(overlay, chart)
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
