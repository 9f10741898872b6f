"""The README of the chart: each value with its default and the comment above it in values.yaml, as helm-docs writes it.

python -m tests.deploy.chart_readme prints it. A comment begins with `# --` and goes on until the value.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent.parent.parent / "deploy" / "helm" / "robots-decisions"
KEY = re.compile(r"^( *)([A-Za-z]+):")
HEAD = """# {name}

{description}

```sh
helm install robots-decisions CHART --namespace robots --create-namespace --values values.yaml
```

Two things have to be set: a store (`storeSecret`, or `valkey.enabled` to try the service) and who may ask
(`apiKeysSecret`, or `allowUnauthenticated`). Helm refuses values that cannot work, and says what to set.
`values-dev.yaml` tries the service, `values-small.yaml` makes it fit a small cluster, and `values-prod.yaml` is a start
for a fleet. The documentation has the steps: docs/how-to/kubernetes.md.

| value | default | |
|---|---|---|
"""


def comments(text: str) -> dict[str, str]:
    """The comments that begin with `# --`, by the dotted name of the value below."""
    found: dict[str, str] = {}
    path: list[str] = []
    words: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# -- "):
            words = [stripped[5:]]
        elif stripped.startswith("# ") and words:
            words.append(stripped[2:])
        elif key := KEY.match(line):
            path[len(key[1]) // 2 :] = [key[2]]
            if words:
                found[".".join(path)] = " ".join(words)
            words = []
    return found


def default(value: Any) -> str:
    """A value as a cell of the table."""
    return f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")


def readme() -> str:
    """The whole text. Raises KeyError if a comment is above no value."""
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    rows = []
    for name, comment in comments(text).items():
        value = values
        for part in name.split("."):
            value = value[part]
        rows.append(f"| `{name}` | {default(value)} | {comment} |\n")
    return HEAD.format(**yaml.safe_load((CHART / "Chart.yaml").read_text())) + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(readme())
