"""The client for Java: its own tests with JUnit."""

from pathlib import Path

import pytest

from tests.clients.runners import run_tests


@pytest.mark.timeout(600)  # it has tests of its own, each with its patience
def test_java_client_passes_its_tests(tmp_path: Path) -> None:
    run_tests("sh clients/java/test/install.sh && sh clients/java/test/run.sh", tmp_path / "played")
