"""Make the synchronous half of the client from the asynchronous one, and the module for httpx2 from the one for httpx.

python clients/python/scripts/generate.py [--check]

--check changes nothing, and exits with 1 if a file is not current. Needs ruff.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "robots_decisions"

TO_SYNC = [
    (r'"""The asynchronous half\..*', '"""The synchronous half."""'),
    (r"import asyncio\n", ""),
    (r"asyncio\.sleep", "time.sleep"),
    (r"\bAwaitable\[None\]", "None"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bAsyncIterable\[(\w+)\] \| Iterable\[\1\]", r"Iterable[\1]"),
    (r"\bAsyncGenerator\[(.+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\basync_each\b", "each"),
    (r"\bdefault_async_http\b", "default_http"),
    (r"\bhandle_async_request\b", "handle_request"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b_async\b", "_sync"),
    (r"\b(__)a(enter|exit__)", r"\1\2"),
    (r"\baclos(e|ing)\b", r"clos\1"),
    (r"\baiter_raw\b", "iter_raw"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"  # noqa: ASYNC109.*", ""),
    (r"import (\w+), \1\b", r"import \1"),
    (r"\bhttpx2, httpx and aiohttp that", "httpx2, httpx and requests that"),
    (r"if cancelled, release it", "if interrupted, release it"),
    (r", in the background\. If", ". If"),
    (r" *# In the background, .*\n", ""),
    (r" *check_asyncio\(\)\n", ""),
    (r"if cancelled, release the slot", "if interrupted, release the slot"),
]
TO_HTTPX2 = [(r"\bhttpx\b", "httpx2"), (r"\b(Async)?Httpx(?=[A-Z])", r"\1Httpx2")]


def replaced(text: str, rules: list[tuple[str, str]]) -> str:
    """The text after all replacements."""
    for pattern, by in rules:
        text = re.sub(pattern, by, text)
    return text


def formatted(text: str, path: Path) -> str:
    """Sort the imports and format."""
    for command in (["check", "--quiet", "--select", "F401,F811,I", "--fix"], ["format", "--quiet"]):
        text = subprocess.run(
            ["ruff", *command, "--stdin-filename", str(path), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


def generated() -> Iterator[tuple[Path, str]]:
    """The path and the text of each generated module."""
    for source in sorted(PACKAGE.glob("_async/*.py")):
        if source.name != "__init__.py":
            yield _made(source, PACKAGE / "_sync" / source.name, TO_SYNC)
    yield _made(PACKAGE / "httpx.py", PACKAGE / "httpx2.py", TO_HTTPX2)


def _made(source: Path, path: Path, rules: list[tuple[str, str]]) -> tuple[Path, str]:
    note = f"# scripts/generate.py made this module from {source.relative_to(PACKAGE)}; change that one.\n"
    return path, formatted(note + replaced(source.read_text(), rules), path)


def main() -> int:
    """Write the modules, or check them."""
    stale = [(path, text) for path, text in generated() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path, _ in stale:
            print(f"{path.relative_to(PACKAGE)} is not current: run scripts/generate.py", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stale:
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
