"""The service on a real socket, and a real Chromium that opens its page."""

import asyncio
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, ConsoleMessage, Page, ViewportSize, async_playwright, expect
from starlette.responses import FileResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.routes.pages import FILES, SCRIPTS, WEB
from app.main.service import create
from tests.api.service import settings_on
from tests.operator_token import TOKEN_FILE
from tests.origins import Names
from tests.patient_service import STORE_TIMEOUT

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
PREFIX = "/tools/robots"
MODULES = {path.name for path in WEB.glob("*.js")} - FILES - SCRIPTS.keys()

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

DESKTOP = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=360, height=740)

expect.set_options(timeout=20_000)  # several test sets may share two cores


def binary() -> str:
    """The path of Chromium; the tests fail without it."""
    names = (os.environ["CHROMIUM"],) if os.environ.get("CHROMIUM") else NAMES
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.fail(f"No Chromium ({' or '.join(names)}) to test the page in. `make test-tools AREA=browser` installs one.")


AXE = {"rules": {"target-size": {"enabled": True}, "label-content-name-mismatch": {"enabled": True}}}
"""Rules of WCAG (2.5.8 and 2.5.3) that axe-core leaves out by default."""

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""By how many pixels the page is wider than the window."""

# The view of CodeMirror around an element.
VIEW = """const { EditorView } = await import(new URL("web/codemirror.js", document.baseURI));
    const viewAt = (element) => EditorView.findFromDOM(element.closest(".cm-editor"));"""

# A paste over the whole content of a text.
PASTE = f"""async (field, text) => {{
    {VIEW}
    viewAt(field).dispatch({{ selection: {{ anchor: 0, head: viewAt(field).state.doc.length }} }});
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    field.dispatchEvent(new ClipboardEvent("paste", {{ clipboardData, bubbles: true, cancelable: true }}));
}}"""

# Show the version of the file of that id, and paste over texts.
PASTE_ALL = f"""async (fields) => {{
    for (const [id, text] of Object.entries(fields)) {{
        const at = ["robots", "other"].indexOf(id);
        if (at >= 0) document.querySelector(`input[name=side][value="${{at}}"]`).click();
        await ({PASTE})(document.getElementById(id), text);
    }}
}}"""

# The text in the field of an id, also that of the version of the file that is not shown.
VALUE = f"""async (id) => {{
    {VIEW}
    const field = document.getElementById(id);
    if (field !== null) return field.value ?? viewAt(field).state.doc.toString();
    const shown = document.querySelector("#robots, #other");
    return viewAt(shown).state.values.find((it) => it?.hidden !== undefined).hidden.toString();
}}"""

# The numbers of lines of the file.
NUMBERS = f"""async (selector) => {{
    {VIEW}
    const numberOf = (view, line) => view.state.doc.lineAt(view.posAtDOM(line)).number;
    return [...document.querySelectorAll(`#editor .cm-line${{selector}}`)].map((it) => numberOf(viewAt(it), it));
}}"""

# Text with too little contrast to its background (WCAG 2.2, 1.4.3), and the lightness of the page.
CONTRAST = """() => {
    const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const ground = (element) => {
        for (let at = element; at !== null; at = at.parentElement) {
            const color = numbers(getComputedStyle(at).backgroundColor);
            if (color.length < 4 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const worst = new Map();
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
        if (!own || element.offsetParent === null) continue;
        const [a, b] = [numbers(getComputedStyle(element).color), ground(element)].map(luminance);
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) worst.set(element.className || element.tagName, ratio);
    }
    return { low: [...worst], ground: luminance(ground(document.body)) };
}"""


class Prefixed:
    """The application behind a proxy that also serves it below PREFIX, which it strips, and the modules of its script.

    Tests import them to call their functions.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(f"{PREFIX}/"):
            scope = {**scope, "path": scope["path"].removeprefix(PREFIX)}
        name = scope.get("path", "").rpartition("/web/")[2]
        app = FileResponse(WEB / name) if name in MODULES else self._app
        await app(scope, receive, send)


@asynccontextmanager
async def serving(
    store_url: str, clock: Callable[[], float] = NOW.timestamp, keys: Path | None = None
) -> AsyncIterator[str]:
    """The URL of the application, which may fetch from loopback and resolves one name, to a private address."""
    # All sites of the tests are ports of one host.
    settings = settings_on(store_url, api_keys_file=keys, pace_by="origin")
    resolver = Names({"private.example": ["10.0.0.1"]})
    app = create(settings, clock=clock, steady=clock, store_clock=clock, store_timeout=STORE_TIMEOUT, resolver=resolver)
    server = uvicorn.Server(uvicorn.Config(Prefixed(app), ws="none", log_config=None, access_log=False))
    # Listen before the server runs, so that an early browser waits instead of being refused.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser with a temporary profile."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=binary(), args=ARGUMENTS, headless=True)
        try:
            yield browser
        finally:
            await browser.close()


class Visitor:
    """A browser page, and its `troubles`: script errors and violations of the policy."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.troubles: list[str] = []
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", self._console)
        page.on("request", lambda request: self.asked.append(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        # The browser logs refused questions as errors, although they are answers of the service.
        if message.type in ("error", "warning") and "responded with a status of 4" not in message.text:
            self.troubles.append(message.text)

    async def open(self, below: str = "") -> None:
        """Open the page and wait for verdicts."""
        await self.page.goto(f"{self.url}{below}")
        await self.unfold()

    async def unfold(self) -> None:
        """Wait for verdicts, and open all that is folded at first: the question, and how a verdict was decided."""
        await expect(self.page.locator("#table button").first).to_be_visible()
        await expect(self.page.locator("#editor .cm-content").first).to_be_attached()
        for name in ("ask-urls", "ask-agents", "ask-more"):
            if await self.page.locator(f"#{name}").is_hidden():
                await self.page.locator(f"[data-opens={name}]").click()
        if await self.page.locator("#why details").get_attribute("open") is None:
            await self.page.locator("#why summary").click()

    async def enter(self, below: str, key: str) -> None:
        """Open the page of a service with keys, enter one, and wait for verdicts."""
        await self.page.goto(f"{self.url}{below}")
        await self.page.get_by_label("API key", exact=True).fill(key)
        await self.page.keyboard.press("Enter")
        await self.unfold()

    async def become_operator(self) -> None:
        """Keep the operator's token in the tab, as if the user had entered it."""
        token = TOKEN_FILE.read_text().strip()
        await self.page.add_init_script(f"sessionStorage.setItem('robots-decisions-key', '{token}')")

    async def fetch(self, site: str) -> None:
        """Fetch the file of a site."""
        await self.page.locator("#site").fill(site)
        await self.page.locator("#site").press("Enter")

    async def lines(self, selector: str) -> list[int]:
        """The numbers of the file's lines with this mark."""
        found: list[int] = await self.evaluate(NUMBERS, selector)
        return found

    async def ask(self, **fields: str) -> None:
        """Paste into the fields of those ids, test, and wait for the answer."""
        # All at once: the page tests while there is a pause, and keeps the verdict that it then chooses.
        await self.evaluate(PASTE_ALL, fields)
        async with self.page.expect_response(lambda response: response.url.endswith("/v1/test") and response.ok):
            await self.page.locator("#test").click()
        await expect(self.page.locator("#verdicts")).not_to_have_attribute("aria-busy", "true")
        await expect(self.page.locator("#stale")).to_be_hidden()

    async def write(self, name: str, text: str) -> None:
        """Paste over the whole text in the field of that id."""
        await expect(self.page.locator("#editor .cm-content").first).to_be_attached()
        await self.evaluate(PASTE_ALL, {name: text})

    async def value(self, name: str) -> str:
        """The text in the field of that id."""
        text: str = await self.evaluate(VALUE, name)
        return text

    async def holds(self, name: str, text: str | re.Pattern[str]) -> None:
        """Wait until that, or a match of that, is the text in the field of that id."""
        holds = text.search if isinstance(text, re.Pattern) else text.__eq__
        for _ in range(400):
            if holds(await self.value(name)):
                return
            await asyncio.sleep(0.05)
        assert holds(await self.value(name)), await self.value(name)

    async def choose(self, page: int, column: int) -> None:
        """Choose the verdict in that row and column, counted from 0."""
        await self.page.locator(f"button[data-row='{page}'][data-column='{column}']").click()

    async def cells(self) -> list[list[str]]:
        """The table's verdicts and their reasons, as "disallow, line 4"."""
        script = """table => [...table.tBodies[0].rows].map(row => [...row.querySelectorAll(".cell")].map(cell =>
            [...cell.querySelectorAll(".verdict")].map(it => it.lastChild.textContent).join(" > ") + ", "
            + cell.querySelector(".because-of").textContent))"""
        found: list[list[str]] = await self.page.locator("#table").evaluate(script)
        return found

    async def evaluate(self, script: str, argument: object = None) -> Any:
        """The value of a JavaScript expression in the page."""
        return await self.page.evaluate(script, argument)

    async def text(self, selector: str) -> str:
        """The text of an element, with normalised whitespace."""
        return " ".join((await self.page.locator(selector).first.inner_text()).split())


@asynccontextmanager
async def visiting(browser: Browser, url: str, **options: Any) -> AsyncIterator[Visitor]:
    """A visitor, whose clock stands at NOW. At the end, the page must have no troubles and no external requests."""
    settings: Mapping[str, Any] = {"viewport": DESKTOP, **options}
    context = await browser.new_context(**settings)
    page = await context.new_page()
    await page.clock.set_fixed_time(NOW)
    visitor = Visitor(page, url)
    try:
        yield visitor
        assert visitor.troubles == []
        assert [address for address in visitor.asked if not address.startswith(url)] == []
    finally:
        await context.close()


async def violations(visitor: Visitor) -> list[str]:
    """The rules that the page breaks, with the elements that do."""
    found = await Axe().run(visitor.page, options=AXE)
    assert found.response["passes"], "axe-core has run"
    return [
        f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]
