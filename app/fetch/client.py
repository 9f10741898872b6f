"""One GET of one robots.txt: redirects hop by hop, one deadline for all, a fact as the answer (RFC 9309 2.3.1)."""

import asyncio
import math
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpcore

from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import (
    BODY_BYTES,
    AddressRefused,
    GuardedBackend,
    GuardedStream,
    NameNotResolved,
    NoPlace,
    ReadingStopped,
    Resolver,
    TlsFailed,
    TooMuchSent,
)
from app.fetch.response import (
    ACCEPT_ENCODING,
    Body,
    Headers,
    Unreadable,
    decoder,
    field,
    read_lifetime,
    read_location,
    read_retry_after,
    read_validators,
    readable,
)
from app.origin import Origin, Target
from app.robots.access import (
    REDIRECT_LIMIT,
    Access,
    Blocked,
    Busy,
    Cause,
    Fetched,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)

UNCONDITIONAL = Validators()

PIECES_AT_ONCE = 256
"""Pieces of a body that are taken in one turn of the event loop."""

PIECES_READ = 65_536
"""How many pieces a body may come in: a chunk of one byte costs as much to read as one of a thousand."""

PROMPT = 0.2
"""The part of its time after which a fetch is a slow one: nearly all have ended by then."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_CAUSES: tuple[tuple[type[Exception], Cause], ...] = (
    (NameNotResolved, Cause.DNS),
    (TlsFailed, Cause.TLS),
    (httpcore.TimeoutException, Cause.TIMEOUT),
    (httpcore.NetworkError, Cause.CONNECTION),
    (httpcore.ProtocolError, Cause.BAD_RESPONSE),
    (TooMuchSent, Cause.BAD_RESPONSE),
    (Unreadable, Cause.BAD_RESPONSE),
)
_FAILURES = tuple(kind for kind, _ in _CAUSES)


@dataclass(frozen=True, slots=True)
class _Redirect:
    """A status of _REDIRECTS, and where it leads: None for a URL that is neither http nor https."""

    status: int
    target: Target | None


@dataclass(slots=True)
class _Walk:
    """How far a fetch has come: `target` is the hop under way, `status` what it answered, `redirect` what led to it."""

    target: Target
    asked_port: int
    seen: set[str]
    status: int | None = None
    redirect: int | None = None

    def end(self, access: Access) -> Fetched:
        return Fetched(access, final_url=self.final_url)

    @property
    def final_url(self) -> str | None:
        return None if self.redirect is None else self.target.url

    def refused(self, address: str) -> Access:
        # Only the caller's own name may be answered with "blocked". Behind a redirect, a file that we will not look
        # at may well be there and may well disallow: nothing was learnt.
        if self.redirect is None:
            return Blocked(address)
        return Unreachable(Cause.REFUSED_REDIRECT, self.redirect)

    def follow(self, redirect: _Redirect, ports: PortPolicy) -> Access | None:
        """Step to where the redirect leads, or say why not (spec A8, A9)."""
        if redirect.target is None:
            return Unavailable(redirect.status, Cause.REFUSED_REDIRECT)
        if len(self.seen) > REDIRECT_LIMIT or redirect.target.url in self.seen:
            return Unavailable(redirect.status, Cause.REDIRECT_LOOP)
        if not ports.admits(redirect.target.origin.port, self.asked_port):
            return Unreachable(Cause.REFUSED_REDIRECT, redirect.status)
        self.target, self.redirect, self.status = redirect.target, redirect.status, None
        self.seen.add(redirect.target.url)
        return None


@dataclass(slots=True)
class _Place:
    """What a fetch takes up: one of the places that all begin in, or, once it is slow, one of those for such."""

    slow: bool = False
    given_up: bool = False


class Fetcher:
    """Fetches robots.txt files, `concurrency` at once and `waiting` more in line, each within `timeout` seconds.

    One that has not ended after a PROMPT part of that time makes room for the next, and is one of the `slow` from then
    on: origins that stall, however many, do not keep those waiting that would answer at once. Where there are as many
    slow ones as may be, it is given up, and that says nothing about its origin.

    Every hop is a connection of its own: nothing is kept alive, so no connection is ever judged for one name and used
    for another, and a fetch that ends, however it ends, leaves nothing open. `sockets` connects to admitted addresses.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        guard: AddressGuard,
        ports: PortPolicy,
        resolver: Resolver,
        ssl_context: ssl.SSLContext,
        sockets: httpcore.AsyncNetworkBackend | None = None,
        timeout: float = 10.0,
        concurrency: int = 256,
        slow: int = 512,
        waiting: int = 1024,
        now: Callable[[], float] = time.time,
    ) -> None:
        if readable(user_agent.encode("latin-1", "replace")) != user_agent or not user_agent.isascii():
            raise ValueError(f"The user agent {user_agent!r} cannot be sent: it should be printable ASCII.")
        self._user_agent = user_agent.encode("ascii")
        self._ports = ports
        self._network = GuardedBackend(guard, resolver, sockets)
        self._ssl_context = ssl_context
        self._timeout = timeout
        self._free = asyncio.Semaphore(concurrency)
        self._slow_limit = slow
        self._slow = 0
        self._waiting_limit = waiting
        self._waiting = 0
        self._now = now
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    async def fetch(self, origin: Origin, validators: Validators = UNCONDITIONAL) -> Fetched:
        """Fetch `origin`'s robots.txt, conditionally if `validators` hold anything; raises Busy and nothing else."""
        if self._closing:
            raise self._busy()
        self._under_way += 1
        self._idle.clear()
        try:
            return await self._fetch(origin, validators)
        finally:
            self._under_way -= 1
            if self._under_way == 0:
                self._idle.set()

    @property
    def under_way(self) -> int:
        """How many fetches are asking an origin now."""
        return self._under_way - self._waiting

    @property
    def slow(self) -> int:
        """How many of those have been at it for so long that they keep no others waiting."""
        return self._slow

    @property
    def waiting(self) -> int:
        """How many wait in line for one of those to end."""
        return self._waiting

    async def aclose(self) -> None:
        """Begin no more fetches, and wait for those under way, `timeout` seconds at most."""
        self._closing = True
        await self._idle.wait()

    def _busy(self) -> Busy:
        # Every fetch that is under way or in line now has ended one way or the other when this time is over.
        return Busy(math.ceil(self._timeout))

    async def _fetch(self, origin: Origin, validators: Validators) -> Fetched:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        await self._wait_in_line(deadline)
        walk = _Walk(Target(origin, "/robots.txt"), asked_port=origin.port, seen={origin.robots_url})
        place = _Place()
        limit = asyncio.timeout_at(deadline)
        prompt = loop.call_later(self._timeout * PROMPT, self._make_room, place, limit)
        try:
            async with limit:
                return await self._walk(walk, validators, deadline)
        except TimeoutError:
            if place.given_up:
                raise self._busy() from None
            return walk.end(Unreachable(Cause.TIMEOUT, walk.status))
        finally:
            prompt.cancel()
            if place.slow:
                self._slow -= 1
            else:
                self._free.release()

    def _make_room(self, place: _Place, limit: asyncio.Timeout) -> None:
        """The fetch is not as prompt as most are: its place is for another now."""
        if self._slow < self._slow_limit:
            self._slow += 1
            place.slow = True
            self._free.release()
        elif not limit.expired():
            place.given_up = True
            limit.reschedule(asyncio.get_running_loop().time())

    async def _wait_in_line(self, deadline: float) -> None:
        if self._free.locked() and self._waiting >= self._waiting_limit:
            raise self._busy()
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                await self._free.acquire()
        except TimeoutError:
            # The origin was never asked, so this says nothing about it: calling it unreachable would close it to the
            # whole fleet because this process was busy.
            raise self._busy() from None
        finally:
            self._waiting -= 1

    async def _walk(self, walk: _Walk, validators: Validators, deadline: float) -> Fetched:
        while True:
            try:
                answer = await self._ask(walk, validators, deadline)
            except NoPlace:
                # As in _wait_in_line: who shares an address with others that stall is not for that unreachable.
                raise self._busy() from None
            except AddressRefused as refused:
                return walk.end(walk.refused(str(refused.address)))
            except _FAILURES as failure:
                cause = next(cause for kind, cause in _CAUSES if isinstance(failure, kind))
                return walk.end(Unreachable(cause, walk.status))
            if isinstance(answer, Fetched):
                return answer
            refusal = walk.follow(answer, self._ports)
            if refusal is not None:
                return walk.end(refusal)

    async def _ask(self, walk: _Walk, validators: Validators, deadline: float) -> Fetched | _Redirect:
        conditions = _conditions(validators)
        request = self._request(walk.target, conditions, deadline - asyncio.get_running_loop().time())
        connection = httpcore.AsyncHTTPConnection(
            origin=request.url.origin, ssl_context=self._ssl_context, network_backend=self._network
        )
        try:
            response = await connection.handle_async_request(request)
            walk.status = response.status
            if response.status in _REDIRECTS:
                return _Redirect(response.status, read_location(walk.target, response.headers))
            return Fetched(
                await self._access(response, conditional=bool(conditions)),
                final_url=walk.final_url,
                validators=read_validators(response.headers),
                lifetime=read_lifetime(response.headers),
            )
        finally:
            await connection.aclose()

    def _request(self, target: Target, conditions: Headers, time_left: float) -> httpcore.Request:
        origin = target.origin
        return httpcore.Request(
            "GET",
            httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=target.path),
            headers=[
                (b"Host", origin.authority.encode("ascii")),
                (b"User-Agent", self._user_agent),
                (b"Accept", b"text/plain, */*;q=0.1"),
                (b"Accept-Encoding", ACCEPT_ENCODING),
                (b"Connection", b"close"),
                *conditions,
            ],
            extensions={"timeout": {"connect": max(0.0, time_left)}},
        )

    async def _access(self, response: httpcore.Response, *, conditional: bool) -> Access | NotModified:
        status = response.status
        if 200 <= status < 300 and status != 206:  # a part of the file is not the file (spec A7)
            body = Body(decoder(response.headers))
            await _receive(response, body)
            content = body.read()
            return Successful(status, content, body.truncated, field(response.headers, b"content-type"))
        if status == 304 and conditional:
            return NotModified()
        if status == 429:
            return Unreachable(Cause.TOO_MANY_REQUESTS, status, read_retry_after(response.headers, self._now()))
        if 400 <= status < 500:
            return Unavailable(status)
        if 500 <= status < 600:
            return Unreachable(Cause.SERVER_ERROR, status, read_retry_after(response.headers, self._now()))
        return Unreachable(Cause.BAD_RESPONSE, status)


def _conditions(validators: Validators) -> Headers:
    """The fields that make a request conditional.

    They go along on every hop, since it was the last hop of the fetch before that sent the validators; a server that
    did not will find no match in them.
    """
    written = ((b"If-None-Match", validators.etag), (b"If-Modified-Since", validators.last_modified))
    return [(name, value.encode("latin-1")) for name, value in written if value is not None and _can_be_sent(value)]


def _can_be_sent(value: str) -> bool:
    try:
        return readable(value.encode("latin-1")) == value
    except UnicodeEncodeError:
        return False


async def _receive(response: httpcore.Response, body: Body) -> None:
    stream: GuardedStream = response.extensions["network_stream"]
    stream.allow(BODY_BYTES)
    pieces = 0
    wrong: Unreadable | None = None
    try:
        # The loop is not left from inside: that would leave httpcore's generators to the garbage collector. It is
        # told to stop, and ends at the next read; what was read before that runs through it unused.
        async for piece in response.aiter_stream():
            if wrong is not None or body.truncated:
                continue
            pieces += 1
            if pieces % PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)  # one read from the socket may bring 10,000 pieces
            wrong = _feed(body, piece, pieces)
            if wrong is not None or body.truncated:
                stream.stop()
    except ReadingStopped:
        pass
    if wrong is not None:
        raise wrong


def _feed(body: Body, piece: bytes, pieces: int) -> Unreadable | None:
    if pieces > PIECES_READ:
        return Unreadable(f"the body comes in more than {PIECES_READ} pieces")
    try:
        body.feed(piece)
    except Unreadable as error:
        return error
    return None
