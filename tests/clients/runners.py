"""Tests of a client in another language, which has a test runner of its own, and plays every conformance case."""

import os
import subprocess
from pathlib import Path

from tests.clients.conformance import PLAYED, case_names
from tests.clients.crawling import ROOT
from tests.clients.serving import service
from tests.service_process import NOT_KEPT


def run_tests(script: str, played: Path, **settings: str) -> None:
    """Run a shell script whose tests ask a service of ours, with these variables; raise AssertionError with its
    output if that fails. The names of the conformance cases that it plays are written to the file `played`."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_KEPT}
    with service(PACE_BY="origin", PACE_FLOOR="0.05") as url:
        ended = subprocess.run(
            ["sh", "-ec", script],
            cwd=ROOT,
            env={**environment, **settings, "SERVICE_URL": url, PLAYED: str(played)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout
    assert set(played.read_text().split()) == case_names()
