"""The programs of the guide print what it says, and decide many rows in every engine as the library does."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bulk.bundles import bundle_of
from tests.core.library import answers
from tests.core.questions import files, questions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "bulk-decisions.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"<!-- run: file (\S+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
PRINTED = re.findall(r"<!-- run: no, tests/bulk runs it -->\n```text\n(.*?)```", PAGE, re.DOTALL)
ROWS = int(os.environ.get("ENGINE_ROWS", "20000"))
SECONDS = 280


def run(program: str, folder: Path) -> str:
    """What a program prints; Spark listens on loopback only, and Ray reports nothing to its vendor."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT}/core",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    environment["PYSPARK_SUBMIT_ARGS"] = "--master local[1] --conf spark.ui.enabled=false pyspark-shell"
    (folder / "program.py").write_text(PROGRAMS[program])
    command = [sys.executable, "program.py"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_programs_print_what_the_guide_says(tmp_path: Path) -> None:
    run("make.py", tmp_path)
    assert [run(name, tmp_path) for name in ("decide.py", "spark.py", "rays.py", "duck.py")] == PRINTED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of real files, and questions about them."""
    bodies = files(7, 500)
    asked = list(questions(7, bodies, ROWS))
    made = tmp_path_factory.mktemp("data")
    pq.write_table(bundle_of(bodies), made / "bundle.parquet", row_group_size=100)
    pages = pa.table({"url": [it.url for it in asked], "agent": [it.agent for it in asked]})
    pq.write_table(pages, made / "pages.parquet")
    verdicts = Counter(str(row[0]) for row in answers(bodies, asked))
    (made / "expected").write_text("\n".join(sorted(f"{verdict} {count}" for verdict, count in verdicts.items())))
    return made


@pytest.mark.parametrize("program", ["spark.py", "rays.py", "duck.py"])
def test_engines_decide_many_rows_as_the_library_does(program: str, folder: Path) -> None:
    printed = run(program, folder)
    found = re.findall(r"^(\w+) (\d+)$|\('?(\w+)'?, (\d+)\)", printed, re.MULTILINE)
    lines = sorted(f"{first or third} {second or fourth}" for first, second, third, fourth in found)
    assert lines == (folder / "expected").read_text().splitlines()
