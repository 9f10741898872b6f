"""Exit with 1, and print what is wrong, unless all objects of the Prometheus Operator are valid, and there are any.

python tests/deploy/operator_objects.py FILE... reads rendered manifests. A field that the operator's definitions do not
have, or a value of another type, is wrong: an API server would drop the one and refuse the other.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from cloudcoil.models.prometheus_operator import v1
from pydantic import ValidationError

GROUP = "monitoring.coreos.com/"
MODELS = {
    ("monitoring.coreos.com/v1", "PrometheusRule"): v1.PrometheusRule,
    ("monitoring.coreos.com/v1", "ServiceMonitor"): v1.ServiceMonitor,
    ("monitoring.coreos.com/v1", "PodMonitor"): v1.PodMonitor,
}


def problems(document: dict[str, Any]) -> list[str]:
    """What is wrong with an object of the operator."""
    version, kind = document["apiVersion"], document["kind"]
    model = MODELS.get((version, kind))
    if model is None:
        return [f"{kind} of {version} is not checked: add its model"]
    try:
        # By name, fields would also be accepted in snake case, which the models have beside the operator's names.
        model.model_validate_json(json.dumps(document), strict=True, extra="forbid", by_alias=True, by_name=False)
    except ValidationError as error:
        return [f"{kind}: {'.'.join(map(str, it['loc']))}: {it['msg']}" for it in error.errors()]
    return []


def main() -> int:
    """Check the files."""
    checked = 0
    found: list[str] = []
    for name in sys.argv[1:]:
        for document in yaml.safe_load_all(Path(name).read_text()):
            if document is not None and document["apiVersion"].startswith(GROUP):
                checked += 1
                found += [f"{name}: {problem}" for problem in problems(document)]
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    if not checked:
        sys.stdout.write("no object of the Prometheus Operator was found\n")
    return 1 if found or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
