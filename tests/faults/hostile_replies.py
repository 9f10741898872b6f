"""Replies of hostile origins for tests.origins.serve; they end when the client disconnects."""

import asyncio
import gzip
import ssl
import warnings
import zlib
from functools import cache

from tests.origins import Authority, Exchange, Handler, head

CHUNKED = head(200, {"Transfer-Encoding": "chunked"})


def endless(start: bytes, again: bytes) -> Handler:
    """Send `start`, then repeat `again` for as long as the client reads."""

    async def send_on(exchange: Exchange) -> None:
        await exchange.send(start)
        while True:
            await exchange.send(again)

    return send_on


def dripping(start: bytes, drop: bytes) -> Handler:
    """The same, but slowly: a timeout per read would never expire."""

    async def drip(exchange: Exchange) -> None:
        await exchange.send(start)
        while True:
            await exchange.send(drop)
            await asyncio.sleep(0.02)

    return drip


def stalling(start: bytes = b"") -> Handler:
    """Send `start`, then stay silent."""

    async def stall(exchange: Exchange) -> None:
        await exchange.send(start)
        await exchange.stall()

    return stall


def resetting(start: bytes = b"", *, after: int = 0) -> Handler:
    """Send `start` once so many bytes of the request have arrived, and reset the connection."""

    async def reset(exchange: Exchange) -> None:
        await exchange.receive(after)
        await exchange.send(start)
        exchange.reset()

    return reset


@cache
def zipped_zeros(size: int) -> bytes:
    """A gzip bomb, which expands a thousandfold."""
    return gzip.compress(b"\0" * size, 1)  # quickly, since a module makes it while tests are collected


def deflated_zeros(size: int) -> bytes:
    """The same in zlib's format."""
    return zlib.compress(b"\0" * size, 1)


BROTLI = bytes.fromhex("cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd5ffeb3c4e09f0088c302005d9218")
"""The same in Brotli (RFC 7932): twenty million zeros in forty bytes."""


def zstd_zeros(size: int) -> bytes:
    """The same in Zstandard, with run-length blocks (RFC 8878 3.1.1)."""
    sizes = [min(ZSTD_BLOCK, size - at) for at in range(0, size, ZSTD_BLOCK)]
    blocks = [
        (size << 3 | 0b010 | (number == len(sizes))).to_bytes(3, "little") for number, size in enumerate(sizes, 1)
    ]
    return b"\x28\xb5\x2f\xfd\xa0" + size.to_bytes(4, "little") + b"".join(block + b"\0" for block in blocks)


ZSTD_BLOCK = 128 * 1024
"""The most bytes that one block can expand to."""


def old_tls(authority: Authority, name: str, newest: ssl.TLSVersion) -> ssl.SSLContext:
    """An outdated server, which supports `newest` and older versions."""
    context = authority.server_context(name)
    allow_old_tls(context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.maximum_version = newest
    return context


def allow_old_tls(context: ssl.SSLContext) -> ssl.SSLContext:
    """Enable versions in the context that OpenSSL disables by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def handshaking(context: ssl.SSLContext) -> Handler:
    """Perform the handshake and send an alert on failure, which asyncio's servers do not."""

    async def shake(exchange: Exchange) -> None:
        received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(received, to_send, server_side=True)
        try:
            while True:
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    await exchange.send(to_send.read())
                    received.write(await exchange.receive(1))
                else:
                    break
        finally:
            await exchange.send(to_send.read())

    return shake
