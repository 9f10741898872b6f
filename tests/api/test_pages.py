"""How the tester page is served; what it does is tested in tests/browser."""

import re
from pathlib import Path

import pytest

from app.api.routes.pages import SWAGGER_UI_FILES, WEB
from tests.api.service import running

INLINE = r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)"

pytestmark = pytest.mark.usefixtures("store_client")


async def test_the_page_comes_under_a_strict_policy(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get("/")
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"


async def test_the_description_of_the_api_comes_from_here_alone(store_url: str) -> None:
    async with running(store_url) as service:
        page, description = await service.client.get("/"), await service.client.get("/docs")
        for gone in ("/redoc", "/docs/oauth2-redirect"):
            assert (await service.client.get(gone)).status_code == 404
    policies = [
        dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
        for response in (page, description)
    ]
    # Swagger UI has icons in its style sheet, and makes markup of its own text.
    del policies[0]["require-trusted-types-for"], policies[0]["trusted-types"]
    assert policies[1] == {**policies[0], "img-src": "'self' data:"}
    for name in ("X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy"):
        assert description.headers[name] == page.headers[name]
    named = re.findall(r'(?:src|href)="([^"]*)"', description.text)
    assert named == ["web/icon.svg", "web/swagger-ui.css", "web/swagger-ui-bundle.js", "web/docs.js", "openapi.json"]
    assert not re.search(INLINE, description.text)


PAGES = {"index.html", "docs.html"}
PARTS = [f"/web/{name}" for name in sorted({path.name for path in WEB.iterdir()} - PAGES | SWAGGER_UI_FILES)]


@pytest.mark.parametrize("path", ["/", "/docs", *PARTS])
async def test_every_file_is_revalidated_and_typed(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(path)
        again = await service.client.get(path, headers={"If-None-Match": response.headers["ETag"]})
        head = await service.client.head(path)
    assert (response.status_code, again.status_code, head.status_code) == (200, 304, 200)
    assert response.headers["Cache-Control"] == again.headers["Cache-Control"] == "no-cache"
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    kind = kinds[path.rpartition(".")[2]] if "." in path else "text/html"
    assert response.headers["Content-Type"].partition(";")[0] == kind
    assert again.content == head.content == b""


@pytest.mark.parametrize(
    "path",
    [
        "/web/",
        "/web/index.html",
        "/web/docs.html",
        "/web/redoc.standalone.js",
        "/web/x.js",
        "/web/..%2fmain.py",
        "/web/%00",
        "/web/a/b",
    ],
)
async def test_nothing_else_is_served(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(path)
    assert (response.status_code, response.headers["Content-Type"]) == (404, "application/problem+json")


async def test_the_page_is_not_written_to(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.post("/")
    assert response.status_code == 405
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD"}


def test_the_page_names_nothing_outside_itself_and_holds_nothing_inline() -> None:
    page = (WEB / "index.html").read_text()
    named = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
    assert named == ["web/icon.svg", "web/style.css", "web/main.js", "docs"]
    assert not re.search(INLINE, page)


@pytest.mark.parametrize("path", sorted(WEB.glob("*.js")), ids=lambda path: path.name)
def test_no_script_turns_text_into_markup(path: Path) -> None:
    script = path.read_text()
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function"
    assert not re.search(markup, script)
