"""Listening on all addresses of both families: `HOST=::`.

asyncio makes a socket for `::` that refuses IPv4. A socket that accepts both would report IPv4 clients by mapped
addresses (`::ffff:192.0.2.1`), which lists of trusted proxies do not contain. So there is a socket for each family.
"""

import errno
import logging
import socket

from uvicorn import Config

from app.main.settings import BadSetting

_BACKLOG = 2048  # as uvicorn's
_NO_IPV6 = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
_log = logging.getLogger("uvicorn.error")


def listeners(config: Config) -> list[socket.socket] | None:
    """Sockets of both families on the same port; None if the host is not `::`, for uvicorn to bind it.

    Only the one for IPv4 where the system has no IPv6. Raises BadSetting if the port is taken.
    """
    if config.host != "::":
        return None
    any_ipv4 = "0.0.0.0"  # noqa: S104 - check_exposure has the say
    sockets = [_bind(socket.AF_INET, any_ipv4, config.port)]
    port = sockets[0].getsockname()[1]
    try:
        sockets.append(_bind(socket.AF_INET6, "::", port))
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
        _log.warning("HOST=:: listens by IPv4 only: the system has no IPv6.")
    for listener in sockets:
        listener.set_inheritable(True)  # for worker processes
    host = any_ipv4 if len(sockets) == 1 else "[::]"
    _log.info("Uvicorn running on http://%s:%d (Press CTRL+C to quit)", host, port)
    return sockets


def _bind(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)  # for IPv6 only, if it is AF_INET6
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadSetting(f"PORT={port} is taken on {host}: set another, or stop what listens there.") from None
        raise
