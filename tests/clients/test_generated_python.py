"""A client that openapi-python-client generates, as docs/how-to/other-languages.md says."""

import sys
from pathlib import Path

import pytest

from tests.clients.generated import ROBOTS, Example, printed
from tests.clients.site import Site, new_address
from tests.origins import serve

TOOLS = Path(sys.executable).parent


@pytest.mark.timeout(600)  # it generates 200 modules, and mypy reads them
async def test_generated_client_asks_reports_and_has_types(default_pace_url: str, tmp_path: Path) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as site:
        example = Example("python", default_pace_url, site.url)
        await printed(example.command, tmp_path, TOOLS)
        client = tmp_path / "generated"
        (client / "use.py").write_text(example.code)
        assert await printed("python use.py", client, TOOLS) == example.prints
    # The generated modules are not strict, but what they declare is.
    await printed("mypy --strict --follow-imports silent use.py", client, TOOLS)
