"""For `make deploy-check`: the queries of the dashboard as a file of rules, since rules are what promtool reads.

python tests/deploy/queries.py < dashboard.json > rules.yaml
"""

import json
import sys
from typing import Any


def rules(dashboard: dict[str, Any]) -> dict[str, Any]:
    """Each query of each panel as a rule; Grafana's own variable for a range becomes a range."""
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    recorded = [
        {"record": f"dashboard:query_{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    return {"groups": [{"name": "dashboard", "rules": recorded}]}


if __name__ == "__main__":
    json.dump(rules(json.load(sys.stdin)), sys.stdout)
