"""The client for JavaScript: its types, and its own tests with Node.js."""

from pathlib import Path

import pytest

from tests.browser.tester import binary
from tests.clients.runners import run_tests


@pytest.mark.timeout(600)  # it has tests of its own, each with its patience
def test_javascript_client_passes_its_tests(tmp_path: Path) -> None:
    run_tests(
        "make --silent clients/javascript/node_modules/.package-lock.json"
        " && cd clients/javascript && npm run --silent types && npm test --silent",
        tmp_path / "played",
        CHROMIUM=binary(),
    )
