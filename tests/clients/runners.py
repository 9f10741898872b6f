"""Tests of a client in another language, which has a test runner of its own."""

import os
import subprocess

from tests.clients.crawling import ROOT
from tests.clients.serving import service
from tests.service_process import NOT_KEPT


def run_tests(script: str, **settings: str) -> None:
    """Run a shell script whose tests ask a service of ours, with these variables; raises AssertionError with its
    output if that fails."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_KEPT}
    with service(PACE_BY="origin", PACE_FLOOR="0.05") as url:
        ended = subprocess.run(
            ["sh", "-ec", script],
            cwd=ROOT,
            env={**environment, **settings, "SERVICE_URL": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout
