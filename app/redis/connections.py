"""Connections to a Redis server that are opened again if the server has closed them.

Servers close connections that are idle, and operators those of a user (CLIENT KILL). The pool of a single server looks
for that before it hands out a connection; those of the nodes of a cluster do not
(https://github.com/redis/redis-py/issues/4028).
"""

import ssl
from collections.abc import Iterable
from typing import Any

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.sentinel import SentinelManagedConnection
from redis.exceptions import ConnectionError as NoConnection

from app.reread import Reread


class _NotSent(NoConnection):
    """The connection was closed before the first byte of the command was sent."""


class _Reopened(AbstractConnection):
    """Opens itself again for a command of which nothing was sent, once, whatever the command does.

    No other command is repeated: the server may have run it.
    """

    def should_reconnect(self) -> bool:
        """Whether to connect again; redis-py asks before each command to a node of a cluster."""
        return bool(super().should_reconnect()) or (  # type: ignore[no-untyped-call]
            self._reader is not None and (self._reader.at_eof() or self._is_closed())
        )

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        try:
            await super().send_packed_command(command, check_health)
        except _NotSent:
            if not check_health:
                raise  # a command of the handshake, for which a new connection would be opened in a circle
            await super().send_packed_command(command, check_health)

    async def _send_packed_command(self, command: Iterable[bytes]) -> None:
        try:
            await super()._send_packed_command(command)
        except RuntimeError as error:
            if not self._is_closed():
                raise
            # uvloop's transports raise it once they are closed, before they take anything; those of asyncio do not.
            # https://github.com/redis/redis-py/pull/4217 is about the same race without uvloop.
            raise _NotSent(str(error)) from error

    def _is_closed(self) -> bool:
        return self._writer is not None and self._writer.transport.is_closing()


class TcpConnection(_Reopened, Connection):
    """A connection without TLS."""


class SocketConnection(_Reopened, UnixDomainSocketConnection):
    """A connection to a local socket."""


class TlsConnection(_Reopened, SSLConnection):
    """Shares one TLS context: that of redis-py would read the system's certificates for every connection.

    https://github.com/redis/redis-py/issues/3599 asks for this.
    """

    def __init__(self, *, tls: Reread[ssl.SSLContext], **options: Any) -> None:
        super().__init__(**options)
        self._tls = tls

    async def _connect(self) -> None:
        self.ssl_context.context = await self._tls.current()
        await super()._connect()  # type: ignore[no-untyped-call]


class MasterConnection(_Reopened, SentinelManagedConnection):
    """A connection to the master that sentinels name."""


class MasterTlsConnection(SentinelManagedConnection, TlsConnection):
    """The same by TLS."""
