"""Sockets that are connected to addresses, over which nothing has been sent."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from app.fetch.guard import Address

Connect: TypeAlias = Callable[[Address, int], Awaitable[socket.socket]]
"""Connects a socket to an address and port; raises OSError."""


async def connect(address: Address, port: int) -> socket.socket:
    """A Connect that connects directly."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    connected = socket.socket(family, socket.SOCK_STREAM)
    try:
        connected.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connected, (str(address), port))
    except BaseException:
        connected.close()
        raise
    return connected
