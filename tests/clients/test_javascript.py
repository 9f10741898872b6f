"""The client for JavaScript: its types, and its own tests with Node.js."""

import pytest

from tests.clients.making import make


@pytest.mark.timeout(600)  # it has tests of its own, each with its patience
def test_javascript_client_passes_its_tests() -> None:
    make("test-javascript")
