"""`python -m app serve`: the service, with a server of its own to keep things in where REDIS_URL names none."""

import argparse
import os
import signal
import sys
from contextlib import ExitStack, suppress

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE

from app.api.connection import Connection, allow_files
from app.api.middleware.auth import is_loopback
from app.cli.exit_codes import Parser
from app.cli.workers import Workers
from app.garbage import collected_when_quiet
from app.main import service
from app.observability import logs, processes
from app.redis.embedded import serve
from app.settings import BadSetting, Settings

ENDING = 60
"""Seconds for which what is under way may go on once the process is told to end: as long as a question may wait."""


def add(parser: Parser) -> None:
    """It takes no arguments: its settings are environment variables."""
    parser.description = "Serve; settings are environment variables, which the README lists."


def run(_arguments: argparse.Namespace) -> int:
    """Serve until told to end; raises what stops the start."""
    # uvicorn sends itself the signal again that it ended by. To be told to end is no failure.
    signal.signal(signal.SIGTERM, _end)
    settings = Settings.read()
    check_exposure(settings)
    allow_files()
    with ExitStack() as stack:
        if settings.redis_url is None:
            # In the environment, since workers are processes that read their settings there.
            os.environ["REDIS_URL"] = stack.enter_context(serve(settings.data_dir))
        if settings.workers > 1:
            stack.enter_context(processes.shared_metrics())
        config = configuration(settings)
        if settings.workers > 1:
            files = (settings.api_keys_file, settings.recheck_file)
            workers = Workers(config, [config.bind_socket()], reread=any(files))
            workers.run()
            return STARTUP_FAILURE if workers.failed else 0
        server = uvicorn.Server(config)
        with suppress(KeyboardInterrupt):
            server.run()
    return 0 if server.started else STARTUP_FAILURE


def _end(_number: int, _frame: object) -> None:
    sys.exit(0)


def check_exposure(settings: Settings) -> None:
    """Raise BadSetting where other machines could reach a service without keys, and nobody said that they may."""
    if settings.api_keys_file is None and not settings.allow_unauthenticated and not is_loopback(settings.host):
        raise BadSetting(
            f"HOST={settings.host} lets other machines ask, and API_KEYS_FILE is not set. Set API_KEYS_FILE to a file "
            "of keys (`python -m app key NAME` makes one), or ALLOW_UNAUTHENTICATED=1 if the network keeps strangers "
            "out, or HOST=127.0.0.1."
        )


def create() -> FastAPI:
    """The application as a process serves it that does nothing else."""
    return service.create(during=collected_when_quiet)


def configuration(settings: Settings, application: str = "app.cli.serve:create") -> uvicorn.Config:
    """How the application is served that this function makes, named as `module:function`."""
    return uvicorn.Config(
        application,
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        http=Connection,
        ws="none",
        timeout_graceful_shutdown=ENDING,
        log_config=logs.configuration(settings.log_format or ("text" if sys.stderr.isatty() else "json")),
        access_log=False,  # the application writes those lines itself, without the query
    )
