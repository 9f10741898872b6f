"""`python -m app settings`: the settings as the service would read them, secrets hidden."""

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.cli.exit_codes import Parser
from app.cli.output import show
from app.main.settings import Settings

HIDDEN = "(hidden)"

_PASSWORD = re.compile(r"(://)[^/?#]*@|([?&][A-Za-z0-9_]*password=)[^&#]*", re.IGNORECASE)


def add(parser: Parser) -> None:
    """Add the arguments: the format."""
    parser.description = (
        "List the settings: the value in force, and the default if it is another. They come from the environment and "
        "from the files in SECRETS_DIR; secrets are not printed."
    )
    parser.add_argument("--json", action="store_true", help='print JSON: {"NAME": {"value", "default"}}')


def run(arguments: argparse.Namespace) -> int:
    """Print a line per setting. Raise BadSetting."""
    settings = Settings.read()
    found = {
        name.upper(): {"value": _shown(getattr(settings, name)), "default": _shown(field.default)}
        for name, field in Settings.model_fields.items()
    }
    if arguments.json:
        sys.stdout.write(json.dumps(found) + "\n")
        return 0
    width = max(map(len, found))
    for name, it in found.items():
        default = "" if it["value"] == it["default"] else f"  (default {_text(it['default'])})"
        show(f"{name:<{width}}  {_text(it['value'])}{default}")
    return 0


def _shown(value: object) -> Any:
    """The value for JSON, without its secrets."""
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, str):
        return _PASSWORD.sub(lambda found: f"{found[1]}{HIDDEN}@" if found[1] else f"{found[2]}{HIDDEN}", value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Iterable):
        return sorted(map(str, value))
    return value


def _text(value: object) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return ",".join(value)
    return json.dumps(value) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
