"""`GET /`: the tester page, and the files that it loads. All of them are in app/web and are served as they are."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

from app.api.problems import Problem

WEB = Path(__file__).parent.parent / "web"

PAGE = "index.html"

# What a robots.txt holds is somebody else's text, and it stands on this page. It only ever becomes text nodes; should
# that fail one day, nothing in it may run, load, or be sent elsewhere, and no script here may turn text into markup.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Asked for again each time, and answered by 304: the files name each other, so two releases must never mix.
    "Cache-Control": "no-cache",
}

_files = StaticFiles(directory=WEB)
_names = frozenset(path.name for path in WEB.iterdir() if path.is_file()) - {PAGE}


async def page(request: Request) -> Response:
    """The page itself. It names its files relative to its own URL, so it works below any prefix that ends in `/`."""
    return await _serve(PAGE, request)


async def part(request: Request) -> Response:
    """A file that the page loads."""
    name = request.path_params["name"]
    if name not in _names:
        raise Problem(404, "not-found", f"The tester page has no file {name[:100]!r}.")
    return await _serve(name, request)


async def _serve(name: str, request: Request) -> Response:
    response = await _files.get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response


router = APIRouter()
router.add_route("/", page, methods=["GET"], include_in_schema=False)
router.add_route("/web/{name}", part, methods=["GET"], include_in_schema=False)
