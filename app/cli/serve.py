"""`python -m app serve`: run the service, with an embedded Valkey if REDIS_URL is not set."""

import argparse
import os
import signal
import sys
from contextlib import ExitStack, suppress
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE

from app.api.middleware.other_sites import is_loopback
from app.auth.operator_token import FILE_NAME, token_file
from app.cli.exit_codes import Parser
from app.cli.listeners import listeners
from app.loop.garbage import GarbageCollection
from app.main import service
from app.main.server.connection import Connection
from app.main.server.connection_limits import raise_file_limit
from app.main.server.workers import Workers
from app.main.settings import BadSetting, Settings
from app.observability import logs, processes
from app.store.embedded import serve

SHUTDOWN_TIMEOUT = 60
"""Seconds that open requests may take after SIGTERM: as long as a question may wait."""


def add(parser: Parser) -> None:
    """Add no arguments: the settings are environment variables."""
    parser.description = "Run the service. Settings are environment variables; see docs/reference/settings.md."


def run(_arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT. Raise what prevents the start."""
    # uvicorn raises the signal that stopped it once more. A requested stop is not a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = Settings.read()
    check_exposure(settings)
    raise_file_limit()
    with ExitStack() as stack:
        if settings.redis_url is None:
            # In the environment, because workers read their settings there.
            os.environ["REDIS_URL"] = stack.enter_context(serve(settings.data_dir))
        if settings.api_keys_file is None:
            _keep_operator_token(settings, stack)
        if settings.workers > 1:
            stack.enter_context(processes.shared_metrics())
        config = configuration(settings)
        if settings.workers > 1:
            files = (
                settings.api_keys_file,
                settings.recheck_file,
                settings.agents_file,
                settings.overrides_file,
                settings.redis_password_file,
            )
            workers = Workers(config, listeners(config) or [config.bind_socket()], reloads=any(files))
            workers.run()
            return STARTUP_FAILURE if workers.failed else 0
        server = uvicorn.Server(config)
        with suppress(KeyboardInterrupt):
            server.run(listeners(config))
    return 0 if server.started else STARTUP_FAILURE


def _keep_operator_token(settings: Settings, stack: ExitStack) -> None:
    """Keep the operator's token in a file, which the environment names for workers. Raise BadSetting."""
    in_data_dir = None if settings.data_dir is None else settings.data_dir / FILE_NAME
    wanted = settings.operator_token_file or in_data_dir
    try:
        path = stack.enter_context(token_file(wanted))
    except ValueError as error:
        raise BadSetting(f"OPERATOR_TOKEN_FILE={wanted}: {error}") from None
    if path is not None:
        os.environ["OPERATOR_TOKEN_FILE"] = str(path)


def check_exposure(settings: Settings) -> None:
    """Raise BadSetting if other machines could use the service without API keys and no setting permits it."""
    if settings.api_keys_file is None and not settings.allow_unauthenticated and not is_loopback(settings.host):
        raise BadSetting(
            f"HOST={settings.host} lets other machines use the service, and API_KEYS_FILE is not set. Set "
            "API_KEYS_FILE to a file of keys (`python -m app key NAME` makes one), or ALLOW_UNAUTHENTICATED=1 if the "
            "network admits only trusted clients, or HOST=127.0.0.1."
        )


def create() -> FastAPI:
    """Create the application for a process that only serves it."""
    return service.create(during=GarbageCollection().running)


def configuration(settings: Settings, application: str = "app.cli.serve:create") -> uvicorn.Config:
    """The uvicorn configuration for an application factory, named as `module:function`."""
    age = settings.max_connection_age
    return uvicorn.Config(
        application,
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        # uvicorn calls it like the class, although it declares only classes.
        http=Connection if age is None else cast("type[Connection]", partial(Connection, max_age=age)),
        ws="none",
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        log_config=logs.configuration(
            settings.log_format or ("text" if sys.stderr.isatty() else "json"), settings.log_level
        ),
        access_log=False,  # the application writes its own, without the query
    )
