"""`python -m app`: the service, with a server of its own to keep things in where REDIS_URL names none."""

import argparse
import os
import sys
from contextlib import ExitStack

import uvicorn

from app import logs, metrics
from app.api.openapi import as_text
from app.main import create
from app.settings import BadSetting, Settings
from app.store.embedded import EmbeddedServerFailed, NoEmbeddedServer, serve


def main() -> int:
    """Run the command that is named; 2 where a setting or the platform does not let it begin."""
    parser = argparse.ArgumentParser(prog="python -m app", description="A robots.txt decision service.")
    commands = {"serve": _serve, "openapi": _openapi}
    parser.add_argument("command", nargs="?", choices=commands, default="serve", help="serve is what no command means")
    command = commands[parser.parse_args().command]
    try:
        command()
    except (BadSetting, NoEmbeddedServer, EmbeddedServerFailed) as error:
        print(f"cannot start: {error}", file=sys.stderr)
        return 2
    return 0


def _serve() -> None:
    settings = Settings.read()
    with ExitStack() as stack:
        if settings.redis_url is None:
            # In the environment, since workers are processes that read their settings there.
            os.environ["REDIS_URL"] = stack.enter_context(serve(settings.data_dir))
        if settings.workers > 1:
            stack.enter_context(metrics.shared())
        uvicorn.run(
            "app.main:create",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            log_config=logs.configuration(settings.log_format or ("text" if sys.stderr.isatty() else "json")),
            access_log=False,  # the application writes those lines itself, without the query
        )


def _openapi() -> None:
    sys.stdout.write(as_text(create(Settings(redis_url="redis://localhost"))))


if __name__ == "__main__":
    sys.exit(main())
