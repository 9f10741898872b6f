"""Sockets that are connected to addresses, over which nothing has been sent."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from app.fetch.guard import Address

Connect: TypeAlias = Callable[[Address, int], Awaitable[socket.socket]]
"""Connects a socket to an address and port; raises OSError."""


async def connect(address: Address, port: int) -> socket.socket:
    """A Connect that connects directly. uvloop's `sock_connect` would have a thread resolve the address first."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    connected = socket.socket(family, socket.SOCK_STREAM)
    try:
        connected.setblocking(False)
        try:
            connected.connect((str(address), port))
        except BlockingIOError:
            await _writable(connected)
            if failed := connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(failed, os.strerror(failed)) from None
    except BaseException:
        connected.close()
        raise
    return connected


async def _writable(waiting: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    is_writable = asyncio.Event()
    loop.add_writer(waiting, is_writable.set)
    try:
        await is_writable.wait()
    finally:
        loop.remove_writer(waiting)
