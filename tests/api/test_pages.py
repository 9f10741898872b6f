"""How the tester page is served; tests/browser tests what it does."""

import re
from graphlib import CycleError
from pathlib import Path

import pytest

from app.api.page_script import page_script
from app.api.routes.pages import FILES, SCRIPTS, SWAGGER_UI_FILES, WEB
from tests.api.service import running

INLINE = r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)"

pytestmark = pytest.mark.usefixtures("store_client")


async def test_page_has_a_strict_content_security_policy(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get("/")
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"


async def test_api_documentation_loads_from_the_service_only(store_url: str) -> None:
    async with running(store_url) as service:
        page, description = await service.client.get("/"), await service.client.get("/docs")
        for gone in ("/redoc", "/docs/oauth2-redirect"):
            assert (await service.client.get(gone)).status_code == 404
    policies = [
        dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
        for response in (page, description)
    ]
    # Swagger UI has icons in its style sheet, and creates markup.
    del policies[0]["require-trusted-types-for"], policies[0]["trusted-types"]
    assert policies[1] == {**policies[0], "img-src": "'self' data:"}
    for name in ("X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy"):
        assert description.headers[name] == page.headers[name]
    named = re.findall(r'(?:src|href)="([^"]*)"', description.text)
    assert named == ["web/icon.svg", "web/swagger-ui.css", "web/swagger-ui-bundle.js", "web/docs.js", "openapi.json"]
    assert not re.search(INLINE, description.text)


PARTS = [f"/web/{name}" for name in sorted(FILES | SWAGGER_UI_FILES | SCRIPTS.keys())]


@pytest.mark.parametrize("path", ["/", "/docs", *PARTS])
async def test_every_file_has_its_type_and_is_revalidated(store_url: str, path: str) -> None:
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
        "/web/main.js",
        "/web/..%2fmain.py",
        "/web/%00",
        "/web/a/b",
    ],
)
async def test_other_files_are_not_served(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(path)
    assert (response.status_code, response.headers["Content-Type"]) == (404, "application/problem+json")


async def test_page_refuses_other_methods(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.post("/")
    assert response.status_code == 405
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD"}


def test_page_has_no_external_urls_and_no_inline_code() -> None:
    page = (WEB / "index.html").read_text()
    named = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
    assert named == ["web/icon.svg", "web/style.css", "web/first.js", "web/page.js", "web/icon.svg", "docs"]
    assert not re.search(INLINE, page)


MODULES = sorted(path.name for path in WEB.glob("*.js") if path.name not in {"codemirror.js", "docs.js", "first.js"})


def test_script_has_every_module_once_and_whole() -> None:
    script = page_script(WEB / "main.js")
    assert "\nimport " not in script
    assert "\nexport " not in script
    for name in MODULES:
        # Whole functions, since the comments between them are left out. None of these lines stands in two modules.
        source = (WEB / name).read_text()
        declared = re.findall(r"^(?:export )?((?:async )?(?:function|class|const|let) .*)$", source, re.MULTILINE)
        assert declared, name
        assert [line for line in declared if line not in script] == [], name
        variable = f"const ${name.removesuffix('.js').replace('-', '_')} = (() => {{\n"
        assert script.count(variable) == (name != "main.js"), name


def test_script_keeps_the_lines_of_a_text() -> None:
    example = re.search(r"robots: `(.*?)`", (WEB / "example.js").read_text(), re.DOTALL)
    assert example is not None
    assert "\n\n" in example[1]
    assert example[0] in page_script(WEB / "main.js")


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\n\nexport const a = () => b;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\n\nexport const b = () => a;\n')
    with pytest.raises(CycleError):
        page_script(tmp_path / "a.js")


async def test_files_of_the_page_are_compressed(store_url: str) -> None:
    async with running(store_url) as service:
        for path in ("/", "/web/page.js", "/web/style.css", "/web/swagger-ui-bundle.js"):
            plain = await service.client.get(path, headers={"Accept-Encoding": "identity"})
            packed = await service.client.get(path, headers={"Accept-Encoding": "gzip"})
            assert "Content-Encoding" not in plain.headers
            assert (packed.headers["Content-Encoding"], packed.headers["Vary"]) == ("gzip", "Accept-Encoding")
            assert packed.num_bytes_downloaded < plain.num_bytes_downloaded / 2
            assert packed.content == plain.content
            assert packed.headers["ETag"] == plain.headers["ETag"]
            assert packed.headers["ETag"].startswith("W/")


def test_no_script_turns_text_into_markup() -> None:
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function")
    assert [path.name for path in WEB.glob("*.js") if markup.search(path.read_text())] == []
