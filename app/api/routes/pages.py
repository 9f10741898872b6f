"""`GET /`, `/docs` and `/openapi.json`: the tester page, the API documentation, and the files that they load.

The files are in app/web, except those of Swagger UI, which come with the package fastapi-offline. Nothing is loaded
from other servers. The modules of the tester page are served as one script.
"""

from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Request, Response
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route, request_response
from starlette.staticfiles import NotModifiedResponse, StaticFiles

from app.api.page_script import page_script
from app.api.problems import Problem
from app.api.services import services_of
from app.api.trials.rows import imported

WEB = Path(__file__).parents[2] / "web"

SWAGGER_UI = Path(str(files("fastapi_offline") / "static"))

PAGE, DOCS = "index.html", "docs.html"

FILES = frozenset({"codemirror.js", "docs.js", "icon.svg", "style.css"})
"""What pages load from app/web as it is."""

SCRIPTS = {name: page_script(WEB / main).encode() for name, main in (("first.js", "first.js"), ("page.js", "main.js"))}
"""What the tester page loads: a module of app/web, with those that it imports."""

OPENAPI_FILE = Path(__file__).parents[3] / "openapi.json"
"""The OpenAPI document, beside `app` in a clone, a wheel and the image."""

SWAGGER_UI_FILES = frozenset({"swagger-ui.css", "swagger-ui-bundle.js"})

# The page shows untrusted robots.txt files, as text nodes only. If that ever fails, the policy still lets nothing in
# them run, load or send, and lets no script turn text into markup.
_OWN = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
_TEXT_ONLY = {"require-trusted-types-for": "'script'", "trusted-types": "'none'"}


def _policy(directives: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in directives.items())


CONTENT_SECURITY = _policy({**_OWN, **_TEXT_ONLY})

# Swagger UI creates markup and has its icons in its style sheet; everything else is as on the tester page.
DOCS_POLICY = _policy({**_OWN, "img-src": "'self' data:"})

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Revalidated each time (304): the files refer to each other, so those of two releases must not mix.
    "Cache-Control": "no-cache",
}

_files, _swagger_ui = StaticFiles(directory=WEB), StaticFiles(directory=SWAGGER_UI)
_contents = {**SCRIPTS, OPENAPI_FILE.name: OPENAPI_FILE.read_bytes()}
_tags = {name: f'"{sha256(content).hexdigest()[:32]}"' for name, content in _contents.items()}


async def page(request: Request) -> Response:
    """The tester page. Its links are relative, so that it works below any prefix that ends in `/`.

    It asks about its example at once, so a helper process starts meanwhile if none runs.
    """
    services_of(request).long_work.prepare(imported)
    return await _serve(PAGE, request)


async def docs(request: Request) -> Response:
    """The API documentation, by Swagger UI."""
    return await _serve(DOCS, request, {"Content-Security-Policy": DOCS_POLICY})


async def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return await _serve(OPENAPI_FILE.name, request)


async def asset(request: Request) -> Response:
    """A file that a page loads."""
    name = request.path_params["name"]
    if name not in FILES | SWAGGER_UI_FILES | SCRIPTS.keys():
        raise Problem("not-found", f"There is no file {name[:100]!r}.")
    return await _serve(name, request)


async def _serve(name: str, request: Request, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    if name in _contents:
        response = _in_memory(name, request)
    else:
        directory = _swagger_ui if name in SWAGGER_UI_FILES else _files
        response = await directory.get_response(name, request.scope)
    response.headers.update({**HEADERS, **headers})
    # A weak one: it is the same for the compressed file (RFC 9110 8.8.1).
    response.headers["ETag"] = f"W/{response.headers['ETag']}"
    return response


def _in_memory(name: str, request: Request) -> Response:
    media_type = "text/javascript" if name in SCRIPTS else "application/json"
    response = Response(_contents[name], media_type=media_type, headers={"ETag": _tags[name]})
    if _files.is_not_modified(response.headers, request.headers):
        return NotModifiedResponse(response.headers)
    return response


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    """A route whose responses are compressed."""
    compressed = GZipMiddleware(request_response(endpoint), minimum_size=500, compresslevel=6)
    return Route(path, compressed, methods=["GET"], include_in_schema=False)


router = APIRouter(
    routes=[_route("/", page), _route("/docs", docs), _route("/openapi.json", openapi), _route("/web/{name}", asset)]
)
