"""`GET /` and `GET /docs`: the tester page, the description of the API, and the files that both load.

They are in app/web and are served as they are, but for Swagger UI: its files come in the package fastapi-offline, which
is pinned by hash as all others are. Nothing is loaded from elsewhere.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

from app.api.problems import Problem

WEB = Path(__file__).parents[2] / "web"

SWAGGER_UI = Path(str(files("fastapi_offline") / "static"))

PAGE, DOCS = "index.html", "docs.html"

SWAGGER_UI_FILES = frozenset({"swagger-ui.css", "swagger-ui-bundle.js"})

# What a robots.txt holds is somebody else's text, and it stands on this page. It only ever becomes text nodes; should
# that fail one day, nothing in it may run, load, or be sent elsewhere, and no script here may turn text into markup.
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


POLICY = _policy({**_OWN, **_TEXT_ONLY})

# Swagger UI makes markup of text, its own, and has its icons in its style sheet. All else is as on the page: nothing is
# loaded from elsewhere, and nothing is sent there.
DOCS_POLICY = _policy({**_OWN, "img-src": "'self' data:"})

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Asked for again each time, and answered by 304: the files name each other, so two releases must never mix.
    "Cache-Control": "no-cache",
}

_files, _swagger_ui = StaticFiles(directory=WEB), StaticFiles(directory=SWAGGER_UI)
_names = frozenset(path.name for path in WEB.iterdir() if path.is_file()) - {PAGE, DOCS}


async def page(request: Request) -> Response:
    """The page itself. It names its files relative to its own URL, so it works below any prefix that ends in `/`."""
    return await _serve(PAGE, request)


async def docs(request: Request) -> Response:
    """The description of the API, by Swagger UI."""
    return await _serve(DOCS, request, {"Content-Security-Policy": DOCS_POLICY})


async def part(request: Request) -> Response:
    """A file that a page loads."""
    name = request.path_params["name"]
    if name not in _names | SWAGGER_UI_FILES:
        raise Problem(404, "not-found", f"The pages have no file {name[:100]!r}.")
    return await _serve(name, request)


async def _serve(name: str, request: Request, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    directory = _swagger_ui if name in SWAGGER_UI_FILES else _files
    response = await directory.get_response(name, request.scope)
    response.headers.update({**HEADERS, **headers})
    return response


router = APIRouter()
router.add_route("/", page, methods=["GET"], include_in_schema=False)
router.add_route("/docs", docs, methods=["GET"], include_in_schema=False)
router.add_route("/web/{name}", part, methods=["GET"], include_in_schema=False)
