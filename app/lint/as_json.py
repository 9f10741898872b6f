"""Warnings as JSON: from bytes to bytes, as a helper process needs it."""

import json
from dataclasses import asdict

from app.lint.linter import lint
from app.robots.robots_txt import RobotsTxt


def warnings_json(body: bytes, content_type: str | None, site: str | None, *, truncated: bool) -> bytes:
    """The warnings about a file, as an array; the arguments are those of `lint` and RobotsTxt."""
    found = lint(RobotsTxt(body, truncated=truncated), content_type, site)
    return json.dumps([asdict(advice) for advice in found], ensure_ascii=False, separators=(",", ":")).encode()
