"""The middleware of the application, in its order."""

import time
from collections.abc import Callable

from fastapi import FastAPI
from starlette.types import Scope

from app.api.answers.http_caching import NoStoreByDefault
from app.api.middleware.access_log import AccessLog
from app.api.middleware.answer_room import AnswerRoom
from app.api.middleware.auth import KeyCheck
from app.api.middleware.body_limit import BodyLimit
from app.api.middleware.direct_routes import DirectRoutes
from app.api.middleware.head_as_get import HeadAsGet
from app.api.middleware.other_sites import RefuseOtherSites, is_loopback
from app.api.routes.allowed import ALLOWED_PATH
from app.api.routes.bundle import BUNDLE_PATH
from app.api.routing import DirectRoute
from app.api.stream import has_lines
from app.auth.keys import Keys
from app.auth.quotas import Quotas
from app.main.settings import Settings
from app.observability.metrics import Metrics


def add_middleware(
    app: FastAPI, settings: Settings, keys: Callable[[], Keys], quotas: Quotas, metrics: Metrics
) -> None:
    """Add the middleware, the innermost first: a request passes the last one first."""
    keys_required = settings.api_keys_file is not None
    app.add_middleware(NoStoreByDefault)
    app.add_middleware(DirectRoutes, routes=[route for route in app.routes if isinstance(route, DirectRoute)])
    app.add_middleware(HeadAsGet)
    app.add_middleware(AnswerRoom, refused=metrics.request_overloaded)
    app.add_middleware(BodyLimit, streamed=_is_streamed, refused=metrics.request_overloaded)
    app.add_middleware(KeyCheck, keys=keys, quotas=quotas, metrics=metrics, required=keys_required)
    if not keys_required:
        loopback_only = is_loopback(settings.host) and not settings.allow_unauthenticated
        app.add_middleware(RefuseOtherSites, loopback_only=loopback_only)
    log, log_client = settings.access_log, settings.log_client
    app.add_middleware(AccessLog, metrics=metrics, monotonic=time.monotonic, access_log=log, log_client=log_client)


def _is_streamed(scope: Scope) -> bool:
    """Whether the body is read line by line, by a route that bounds what it holds of it."""
    return scope["path"] in (ALLOWED_PATH, BUNDLE_PATH) and scope["method"] == "POST" and has_lines(scope)
