"""`python -m app agents`, `settings` and `--version`, and how a command ends."""

import json
import subprocess
import sys
from pathlib import Path

from app import __version__
from app.main.settings import Settings
from robots_core.agents.directory import AgentCategory, builtin_directory
from tests.cli.command import run
from tests.forked import ROOT


async def test_version_is_printed() -> None:
    ended = await run("--version")
    assert (ended.code, ended.out) == (0, f"robots-decisions-server {__version__}\n")


async def test_agents_lists_the_directory_by_category() -> None:
    ended = await run("agents")
    assert [line.split()[0] for line in ended.out.splitlines()] == [it.agent.token for it in builtin_directory().rows]
    of_category = json.loads((await run("agents", "--category", "ai-training", "--json")).out)["agents"]
    expected = [it.agent.token for it in builtin_directory().rows if it.category is AgentCategory.AI_TRAINING]
    assert [it["token"] for it in of_category] == expected
    unknown = await run("agents", "--category", "nothing")
    assert (unknown.code, unknown.out) == (3, "")


SECRET = "0123456789abcdef0123456789abcdef"


async def test_settings_lists_values_and_hides_secrets(tmp_path: Path) -> None:
    (tmp_path / "permit_secret").write_text(SECRET)
    chosen = {
        "SECRETS_DIR": str(tmp_path),
        "REDIS_URL": "rediss://user:pass-1@redis.example/0?sentinel_password=pass-2&sentinel_username=u",
        "WORKERS": "3",
        "ALLOW_PORTS": "81,80",
        "PURPOSES": "search",
    }
    ended = await run("settings", settings=chosen)
    assert ended.code == 0, ended.err
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in ended.out.splitlines()}
    assert rows.keys() == {name.upper() for name in Settings.model_fields}
    assert rows["WORKERS"] == "3  (default 1)"
    assert rows["PORT"] == "8080"
    listed = json.loads((await run("settings", "--json", settings=chosen)).out)
    assert listed["ALLOW_PORTS"] == {"value": ["80", "81"], "default": []}
    assert listed["PERMIT_SECRET"]["value"] == "(hidden)"
    assert listed["REDIS_URL"]["value"].startswith("rediss://(hidden)@redis.example/0?sentinel_password=(hidden)&")
    for secret in (SECRET, "pass-1", "pass-2"):
        assert secret not in ended.out
        assert secret not in json.dumps(listed)


async def test_settings_names_an_invalid_value() -> None:
    ended = await run("settings", settings={"PORT": "many"})
    assert (ended.code, ended.out) == (3, "")
    assert "PORT=many" in ended.err


AT_THE_END = """
import atexit, gc, sys
atexit.register(lambda: print(len(gc.get_objects())))
from app.__main__ import main
main()
"""


def test_no_garbage_is_looked_for_among_imports_at_the_end() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", AT_THE_END, "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(ended.stdout.splitlines()[-1]) < 1000
