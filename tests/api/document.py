"""The OpenAPI document. `test_openapi.py` compares it with the one that the service makes."""

import json
from pathlib import Path
from typing import Any

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "openapi.json").read_text(encoding="utf-8"))
