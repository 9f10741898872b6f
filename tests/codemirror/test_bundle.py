"""The page's copy of CodeMirror is what its lock builds, and has the licences of what it contains."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from app.api.routes.pages import WEB

FOLDER = Path(__file__).parents[2] / "deploy" / "codemirror"
BUNDLE = WEB / "codemirror.js"


@pytest.mark.timeout(600)  # npm may have to install what builds it
def test_bundle_is_what_its_lock_builds(tmp_path: Path) -> None:
    built = tmp_path / "codemirror.js"
    subprocess.run(["node", FOLDER / "build.mjs", built], check=True)
    assert built.read_bytes() == BUNDLE.read_bytes(), "`make generate NAME=codemirror` builds it"


def test_bundle_has_the_licence_of_each_package() -> None:
    notices = BUNDLE.read_text().partition("*/")[0]
    named = dict(re.findall(r"([@a-z][^\s,]*) (\d+\.\d+\.\d+)", notices))
    locked = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    assert named == {name: locked[f"node_modules/{name}"]["version"] for name in named}
    assert json.loads((FOLDER / "package.json").read_text())["dependencies"].keys() <= named.keys()
    for name in named:
        assert locked[f"node_modules/{name}"]["license"] == "MIT"
        assert (FOLDER / "node_modules" / name / "LICENSE").read_text().strip() in notices
