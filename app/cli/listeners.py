"""Listening on the address of HOST, with an error that names the setting; `HOST=::` is all of both families.

asyncio makes a socket for `::` that refuses IPv4. A socket that accepts both would report IPv4 clients by mapped
addresses (`::ffff:192.0.2.1`), which lists of trusted proxies do not contain. So there is a socket for each family.
"""

import errno
import logging
import socket
from ipaddress import ip_address

from uvicorn import Config

from app.main.settings import BadSetting

_BACKLOG = 2048  # as uvicorn's
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_NO_IPV6 = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
_log = logging.getLogger("uvicorn.error")


def listeners(config: Config) -> list[socket.socket] | None:
    """The socket of an address, or of both families for `::`; None if the host is a name, for uvicorn to bind it.

    For `::` only the one for IPv4 where the system has no IPv6. Raises BadSetting if the port is taken.
    """
    try:
        version = ip_address(config.host).version
    except ValueError:
        return None
    sockets = (
        _of_both_families(config.port) if config.host == "::" else [_bind(_FAMILIES[version], config.host, config.port)]
    )
    for listener in sockets:
        listener.set_inheritable(True)  # for worker processes
    host, port = sockets[-1].getsockname()[:2]
    _log.info("Uvicorn running on http://%s:%d (Press CTRL+C to quit)", f"[{host}]" if ":" in host else host, port)
    return sockets


def _of_both_families(port: int) -> list[socket.socket]:
    any_ipv4 = "0.0.0.0"  # noqa: S104 - check_exposure has the say
    sockets = [_bind(socket.AF_INET, any_ipv4, port)]
    port = sockets[0].getsockname()[1]
    try:
        sockets.append(_bind(socket.AF_INET6, "::", port))
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
        _log.warning("HOST=:: listens by IPv4 only: the system has no IPv6.")
    return sockets


def _bind(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)  # for IPv6 only, if it is AF_INET6
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadSetting(
                f"PORT={port} is in use on {host}: set another, as in PORT={port + 1}, or stop what listens there."
            ) from None
        raise
