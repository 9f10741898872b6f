"""The service as `python -m app` serves it, and one route more, which tells how many tasks there are."""

import asyncio

import uvicorn
from fastapi import FastAPI

from app import main
from app.api.connection import allow_files
from app.commands.serve import configuration
from app.settings import Settings

PATH = "/tasks"


def create() -> FastAPI:
    """The application that is watched."""
    app = main.create()

    @app.get(PATH)
    async def tasks() -> int:
        """How many tasks there are beside the one that counts."""
        return len(asyncio.all_tasks()) - 1

    return app


if __name__ == "__main__":
    allow_files()
    uvicorn.Server(configuration(Settings.read(), "tests.faults.watched:create")).run()
