"""A client by the types that openapi-typescript generates, as docs/how-to/other-languages.md says."""

from pathlib import Path

import pytest

from tests.clients.crawling import ROOT
from tests.clients.generated import ROBOTS, Example, printed
from tests.clients.site import Site, new_address
from tests.origins import serve

MODULES = ROOT / "clients/javascript/node_modules"
COMPILE = "tsc --strict --module nodenext --target es2022 --skipLibCheck --types node use.ts"


@pytest.mark.timeout(600)  # npm may have to install the tools
async def test_generated_types_fit_what_is_asked_and_answered(default_pace_url: str, tmp_path: Path) -> None:
    await printed("make --silent clients/javascript/node_modules/.package-lock.json", ROOT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(MODULES)
    tools = MODULES / ".bin"
    async with serve(Site(ROBOTS), host=new_address()) as site:
        example = Example("typescript", default_pace_url, site.url)
        await printed(example.command, tmp_path, tools)
        (tmp_path / "use.ts").write_text(example.code)
        await printed(COMPILE, tmp_path, tools)
        assert await printed("node use.js", tmp_path) == example.prints
