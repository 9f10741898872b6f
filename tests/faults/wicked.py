"""What a hostile origin does to its clients: replies for tests.origins.serve, which end when the client goes."""

import asyncio
import gzip
import ssl
import warnings
import zlib

from tests.origins import Authority, Exchange, Handler, head

CHUNKED = head(200, {"Transfer-Encoding": "chunked"})


def endless(start: bytes, again: bytes) -> Handler:
    """Send `start`, and `again` for as long as it is taken."""

    async def send_on(exchange: Exchange) -> None:
        await exchange.send(start)
        while True:
            await exchange.send(again)

    return send_on


def dripping(start: bytes, drop: bytes) -> Handler:
    """The same, but a drop only every now and then: a time-out for each read would never be met."""

    async def drip(exchange: Exchange) -> None:
        await exchange.send(start)
        while True:
            await exchange.send(drop)
            await asyncio.sleep(0.02)

    return drip


def stalling(start: bytes = b"") -> Handler:
    """Send `start`, and nothing more."""

    async def stall(exchange: Exchange) -> None:
        await exchange.send(start)
        await exchange.stall()

    return stall


def resetting(start: bytes = b"", *, after: int = 0) -> Handler:
    """Send `start` once so many bytes of the request are there, and reset the connection."""

    async def reset(exchange: Exchange) -> None:
        await exchange.receive(after)
        await exchange.send(start)
        exchange.reset()

    return reset


def zipped_zeros(size: int) -> bytes:
    """A gzip bomb: a thousandth of what it becomes."""
    return gzip.compress(b"\0" * size)


def deflated_zeros(size: int) -> bytes:
    """The same in zlib's format."""
    return zlib.compress(b"\0" * size, 9)


BROTLI = bytes.fromhex("cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd5ffeb3c4e09f0088c302005d9218")
"""The same in Brotli (RFC 7932): twenty million zeros in forty bytes, by the coding's own tool."""


def zstd_zeros(size: int) -> bytes:
    """The same in Zstandard, block by block: each says how often its one octet comes (RFC 8878 3.1.1)."""
    sizes = [min(ZSTD_BLOCK, size - at) for at in range(0, size, ZSTD_BLOCK)]
    blocks = [
        (size << 3 | 0b010 | (number == len(sizes))).to_bytes(3, "little") for number, size in enumerate(sizes, 1)
    ]
    return b"\x28\xb5\x2f\xfd\xa0" + size.to_bytes(4, "little") + b"".join(block + b"\0" for block in blocks)


ZSTD_BLOCK = 128 * 1024
"""The most that one block may stand for."""


def old_tls(authority: Authority, name: str, newest: ssl.TLSVersion) -> ssl.SSLContext:
    """A server that speaks `newest` and older, as if it had never been updated."""
    context = authority.server_context(name)
    allow_old_tls(context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.maximum_version = newest
    return context


def allow_old_tls(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same context, which now speaks what OpenSSL has put away."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def handshaking(context: ssl.SSLContext) -> Handler:
    """Shake hands, and tell the client why not, as asyncio's own servers do not: they end without an alert."""

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
