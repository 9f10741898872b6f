"""Reach addresses through the operator's proxy: a tunnel for each connection (CONNECT, RFC 9110 9.3.6).

The tunnel leads to the address that was checked, not to the name: a proxy that resolved the name again could be led
elsewhere. TLS is inside the tunnel, so the certificate is verified against the host name as without a proxy.
"""

import asyncio
import os
import socket
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

from app.fetch.exchange import end_of_head
from app.fetch.guard import Address
from app.fetch.network import ADDRESSES_TRIED, Resolver
from app.fetch.sockets import Connect, connect
from robots_core.origin import read_target

PROXY_PATIENCE: Final = 2.0
"""Seconds for a connection to the proxy, which is near."""

ANSWER_BYTES: Final = 16 * 1024
"""Bytes of the longest answer to CONNECT."""

_EXAMPLE: Final = "write it as http://proxy.example:3128 or http://user:password@proxy.example:3128"

_CREDENTIALS_WANTED: Final = "FETCH_PROXY has no credentials that it accepts"
_HINTS: Final = {
    401: _CREDENTIALS_WANTED,  # of tinyproxy
    403: "its rules refuse the address or the port",
    405: "it permits no CONNECT",
    407: _CREDENTIALS_WANTED,
}


class ProxyFailed(ConnectionError):
    """The proxy opened no tunnel; the text says why, without its name and credentials."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, and the value of Proxy-Authorization; None to send none."""

    host: str
    port: int
    authorization: bytes | None = field(default=None, repr=False)


def read_proxy(url: str) -> Proxy:
    """The proxy at a URL. Raises ValueError, whose text has nothing of the URL."""
    if not url.lower().startswith("http://"):
        raise ValueError(f"the proxy is asked over http, also for https sites; {_EXAMPLE}")
    try:
        parts = urlsplit(url)
        host, port = read_target(url).origin.host, parts.port
    except ValueError:  # its text may quote the URL, and so a password
        raise ValueError(f"it is not a URL of a proxy; {_EXAMPLE}") from None
    if port is None:
        raise ValueError(f"it has no port; {_EXAMPLE}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"nothing may follow the port; {_EXAMPLE}")
    user, colon, password = (parts.netloc.rpartition("@")[0]).partition(":")
    if not user and not colon:
        return Proxy(host, port)
    credentials = f"{unquote(user)}:{unquote(password)}"
    if ":" in unquote(user) or not credentials.isprintable():
        raise ValueError("its credentials cannot be sent: a user has no colon, and neither part has control characters")
    return Proxy(host, port, b"Basic " + b64encode(credentials.encode()))


class Tunnels:
    """A Connect that asks the proxy for a tunnel. `direct` connects to the proxy, whose name `resolver` resolves."""

    def __init__(self, proxy: Proxy, resolver: Resolver, direct: Connect = connect) -> None:
        self._proxy = proxy
        self._resolver = resolver
        self._direct = direct

    async def __call__(self, address: Address, port: int) -> socket.socket:
        tunnel = await self._to_proxy()
        try:
            await self._open(tunnel, f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}")
        except BaseException:
            tunnel.close()
            raise
        return tunnel

    async def _to_proxy(self) -> socket.socket:
        addresses, why = await self._addresses(), "its name has no address"
        for address in addresses:
            try:
                async with asyncio.timeout(PROXY_PATIENCE / len(addresses)):
                    return await self._direct(address, self._proxy.port)
            except TimeoutError:
                why = f"there was none within {PROXY_PATIENCE:g} s"
            except OSError as error:
                # Not the error's own text, which has the address.
                why = "it failed" if error.errno is None else os.strerror(error.errno).lower()
        raise ProxyFailed(f"no connection to the proxy: {why}")

    async def _addresses(self) -> Sequence[Address]:
        # Not checked by the guard: an operator has named it, and its address is usually private.
        try:
            return [ip_address(self._proxy.host)]
        except ValueError:
            pass
        try:
            return (await self._resolver(self._proxy.host))[:ADDRESSES_TRIED]
        except OSError:
            raise ProxyFailed("the name of the proxy could not be resolved") from None

    async def _open(self, tunnel: socket.socket, target: str) -> None:
        lines = [f"CONNECT {target} HTTP/1.1".encode(), f"Host: {target}".encode()]
        if self._proxy.authorization is not None:
            lines.append(b"Proxy-Authorization: " + self._proxy.authorization)
        loop, answer, end = asyncio.get_running_loop(), bytearray(), 0
        try:
            await loop.sock_sendall(tunnel, b"\r\n".join([*lines, b"", b""]))
            while not end:
                received = await loop.sock_recv(tunnel, ANSWER_BYTES + 1 - len(answer))
                searched = max(0, len(answer) - len(b"\n\r"))
                answer += received
                end = end_of_head(answer, searched)
                if not received:
                    raise ProxyFailed("the proxy closed the connection without a whole answer to CONNECT")
                if not end and len(answer) > ANSWER_BYTES:
                    raise ProxyFailed(f"the answer of the proxy to CONNECT has more than {ANSWER_BYTES} bytes")
        except ProxyFailed:
            raise
        except OSError:
            raise ProxyFailed("the connection to the proxy was reset") from None
        _check(_status(answer), len(answer) - end)


def _status(answer: bytearray) -> int:
    version, _, rest = bytes(answer).partition(b"\n")[0].partition(b" ")
    status = rest.strip().partition(b" ")[0]
    if not version.startswith(b"HTTP/") or len(status) != 3 or not status.isdigit():
        raise ProxyFailed("the proxy did not answer CONNECT as HTTP does")
    return int(status)


def _check(status: int, more: int) -> None:
    """Raise ProxyFailed unless the status opens a tunnel, and no more bytes have come through it."""
    if not 200 <= status < 300:
        hint = _HINTS.get(status) or ("it could not reach the address" if status >= 500 else "")
        raise ProxyFailed(f"the proxy answered CONNECT with {status}" + (f": {hint}" if hint else ""))
    if more:
        # No site speaks before it is asked, so this would be read as the answer to a request that was not sent.
        raise ProxyFailed("the proxy sent data through a tunnel that had not been used")
