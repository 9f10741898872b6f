"""For `make check NAME=deploy`: print the dashboard's queries as a rule file, since promtool checks rules.

python tests/deploy/queries.py < dashboard.json > rules.yaml
"""

import json
import sys
from typing import Any


def rules(dashboard: dict[str, Any]) -> dict[str, Any]:
    """Each query of each panel as a rule; Grafana's range variable is replaced by a range."""
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    recorded = [
        {"record": f"dashboard:query_{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    return {"groups": [{"name": "dashboard", "rules": recorded}]}


if __name__ == "__main__":
    json.dump(rules(json.load(sys.stdin)), sys.stdout)
