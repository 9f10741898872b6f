"""The generated clients of docs/how-to/other-languages.md: its blocks ask a service and a site of a test."""

import asyncio
import os
from pathlib import Path

from tests.clients.crawling import ROOT
from tests.docs.examples import blocks

PAGE = ROOT / "docs/how-to/other-languages.md"
ROBOTS = "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n"
"""The file of the site that the blocks ask about."""


class Example:
    """The command that generates a client, code in a language that uses it, and what that prints, with these URLs."""

    def __init__(self, language: str, service: str, site: str) -> None:
        found = list(blocks(PAGE.read_text().split("## A generated client\n")[1]))
        at = [block.language for block in found].index(language)
        texts = (block.text.replace("http://127.0.0.1:8080", service) for block in found[at - 1 : at + 2])
        self.command, self.code, self.prints = (text.replace("http://127.0.0.1:9000", site) for text in texts)


async def printed(command: str, folder: Path, *paths: Path) -> str:
    """What a shell command prints in a folder, where these paths have its tools; raises AssertionError if it fails."""
    environment = {**os.environ, "PATH": os.pathsep.join([*map(str, paths), os.environ["PATH"]])}
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_shell(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe)
    out, err = await running.communicate()
    assert running.returncode == 0, (out + err).decode()
    return out.decode()
