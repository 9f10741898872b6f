"""`GET /` and `GET /docs`: the tester page, the API documentation, and the files that they load.

The files are in app/web, except those of Swagger UI, which come with the package fastapi-offline. Nothing is loaded
from other servers.
"""

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Request, Response
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route, request_response
from starlette.staticfiles import StaticFiles

from app.api.problems import Problem

WEB = Path(__file__).parents[2] / "web"

SWAGGER_UI = Path(str(files("fastapi_offline") / "static"))

PAGE, DOCS = "index.html", "docs.html"

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
_names = frozenset(path.name for path in WEB.iterdir() if path.is_file()) - {PAGE, DOCS}


async def page(request: Request) -> Response:
    """The tester page. Its links are relative, so that it works below any prefix that ends in `/`."""
    return await _serve(PAGE, request)


async def docs(request: Request) -> Response:
    """The API documentation, by Swagger UI."""
    return await _serve(DOCS, request, {"Content-Security-Policy": DOCS_POLICY})


async def asset(request: Request) -> Response:
    """A file that a page loads."""
    name = request.path_params["name"]
    if name not in _names | SWAGGER_UI_FILES:
        raise Problem(404, "not-found", f"There is no file {name[:100]!r}.")
    return await _serve(name, request)


async def _serve(name: str, request: Request, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    directory = _swagger_ui if name in SWAGGER_UI_FILES else _files
    response = await directory.get_response(name, request.scope)
    response.headers.update({**HEADERS, **headers})
    # A weak one: it is the same for the compressed file (RFC 9110 8.8.1).
    response.headers["ETag"] = f"W/{response.headers['ETag']}"
    return response


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    """A route whose responses are compressed."""
    compressed = GZipMiddleware(request_response(endpoint), minimum_size=500, compresslevel=6)
    return Route(path, compressed, methods=["GET"], include_in_schema=False)


router = APIRouter(routes=[_route("/", page), _route("/docs", docs), _route("/web/{name}", asset)])
