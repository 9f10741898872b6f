"""Fetch one robots.txt, following redirects, and report what was found (RFC 9309 2.3.1)."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from traceback import clear_frames

import httpcore2

from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import (
    BODY_BYTES,
    AddressBusy,
    AddressRefused,
    GuardedBackend,
    GuardedStream,
    NameNotResolved,
    ReadingStopped,
    Resolver,
    TlsFailed,
    TooMuchSent,
)
from app.fetch.profile import FetchProfile
from app.fetch.queue import FetchQueue
from app.fetch.response import (
    ACCEPT_ENCODING,
    Body,
    Headers,
    Unreadable,
    decoder,
    field,
    is_challenge,
    is_html,
    read_lifetime,
    read_location,
    read_validators,
    readable,
    retry_after,
)
from app.origin import Origin, Target
from app.robots.access import (
    REDIRECT_LIMIT,
    Access,
    Blocked,
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
"""Pieces of a body that are decoded before other tasks run."""

PIECES_LIMIT = 65_536
"""How many pieces a body may arrive in: a chunk of one byte costs as much to read as one of a thousand."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_CAUSES: tuple[tuple[type[Exception], Cause], ...] = (
    (NameNotResolved, Cause.DNS),
    (TlsFailed, Cause.TLS),
    (httpcore2.TimeoutException, Cause.TIMEOUT),
    (httpcore2.NetworkError, Cause.CONNECTION),
    (httpcore2.ProtocolError, Cause.BAD_RESPONSE),
    (TooMuchSent, Cause.BAD_RESPONSE),
    (Unreadable, Cause.BAD_RESPONSE),
)
_FAILURES = tuple(kind for kind, _ in _CAUSES)


@dataclass(frozen=True, slots=True)
class _Redirect:
    """A redirect; `target` is None for a URL that is neither http nor https."""

    status: int
    target: Target | None


@dataclass(slots=True)
class _Walk:
    """The progress of a fetch: the hop's `target`, the `status` of its response, and that of the `redirect` before it.

    `asked_port` is the port of the caller's URL; `seen` are the URLs of all hops.
    """

    target: Target
    profile: FetchProfile
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
        # "Blocked" is an answer about the caller's own host. A redirect to a refused address may lead to a file
        # that disallows, so nothing was learned.
        if self.redirect is None:
            return Blocked(address)
        return Unreachable(Cause.REFUSED_REDIRECT, self.redirect)

    def follow(self, redirect: _Redirect, ports: PortPolicy) -> Access | None:
        """Follow the redirect, or return the result if that is not permitted (spec A8, A9)."""
        if redirect.target is None:
            return Unavailable(redirect.status, Cause.REFUSED_REDIRECT)
        if len(self.seen) > REDIRECT_LIMIT or redirect.target.url in self.seen:
            return Unavailable(redirect.status, Cause.REDIRECT_LOOP)
        if not ports.admits(redirect.target.origin.port, self.asked_port):
            return Unreachable(Cause.REFUSED_REDIRECT, redirect.status)
        self.target, self.redirect, self.status = redirect.target, redirect.status, None
        self.seen.add(redirect.target.url)
        return None


class Fetcher:
    """Fetches robots.txt files, within the limits of a FetchQueue; see there for `concurrency`, `slow` and `waiting`.

    Every hop opens a connection of its own and none is kept alive: no connection is judged for one name and used for
    another, and a fetch leaves nothing open, however it ends. `sockets` connects to admitted addresses. `timeout` is in
    seconds and bounds a whole fetch. `profile` is for origins without one; `profiles` gives the others by name.
    """

    def __init__(
        self,
        *,
        profile: FetchProfile,
        guard: AddressGuard,
        ports: PortPolicy,
        resolver: Resolver,
        ssl_context: ssl.SSLContext,
        sockets: httpcore2.AsyncNetworkBackend | None = None,
        timeout: float = 10.0,
        concurrency: int = 256,
        slow: int = 512,
        waiting: int = 1024,
        now: Callable[[], float] = time.time,
        profiles: Callable[[], Mapping[str, FetchProfile]] = dict,
    ) -> None:
        self.queue = FetchQueue(timeout=timeout, concurrency=concurrency, slow=slow, waiting=waiting)
        self._default = profile
        self._profiles = profiles
        self._ports = ports
        self._network = GuardedBackend(guard, resolver, sockets)
        self._ssl_context = ssl_context
        self._now = now

    async def fetch(self, origin: Origin, validators: Validators = UNCONDITIONAL, caller: str = "") -> Fetched:
        """Fetch the origin's robots.txt, conditionally if there are validators. Raises Busy and nothing else.

        `caller`: see FetchQueue.slot().
        """
        profile = self._default if origin.profile is None else self._profiles().get(origin.profile)
        if profile is None:
            raise self.queue.busy()  # it was removed since the question was asked; the next one names another
        target = Target(origin.with_profile(None), "/robots.txt")
        walk = _Walk(target, profile, asked_port=origin.port, seen={origin.robots_url})
        try:
            async with self.queue.slot(caller) as deadline:
                return await self._walk(walk, validators, deadline)
        except TimeoutError:
            return walk.end(Unreachable(Cause.TIMEOUT, walk.status))

    async def aclose(self) -> None:
        """Begin no more fetches, and wait for those that have begun, `timeout` seconds at most."""
        await self.queue.aclose()

    async def _walk(self, walk: _Walk, validators: Validators, deadline: float) -> Fetched:
        while True:
            try:
                answer = await self._ask(walk, validators, deadline)
            except AddressBusy:
                # Nothing was asked. An origin that shares its address with others that stall is not unreachable.
                raise self.queue.busy() from None
            except AddressRefused as refused:
                return walk.end(walk.refused(str(refused.address)))
            except _FAILURES as failure:
                cause = next(cause for kind, cause in _CAUSES if isinstance(failure, kind))
                _clear_frames(failure)
                return walk.end(Unreachable(cause, walk.status))
            if isinstance(answer, Fetched):
                return answer
            refusal = walk.follow(answer, self._ports)
            if refusal is not None:
                return walk.end(refusal)

    async def _ask(self, walk: _Walk, validators: Validators, deadline: float) -> Fetched | _Redirect:
        conditions = _conditions(validators)
        request = self._request(walk, conditions, deadline - asyncio.get_running_loop().time())
        connection = httpcore2.AsyncHTTPConnection(
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

    def _request(self, walk: _Walk, conditions: Headers, time_left: float) -> httpcore2.Request:
        target, origin = walk.target, walk.target.origin
        return httpcore2.Request(
            "GET",
            httpcore2.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=target.path),
            headers=[
                (b"Host", origin.authority.encode("ascii")),
                *walk.profile.headers(origin, self._now()),
                (b"Accept", b"text/plain, */*;q=0.1"),
                (b"Accept-Encoding", ACCEPT_ENCODING),
                (b"Connection", b"close"),
                *conditions,
            ],
            extensions={"timeout": {"connect": max(0.0, time_left)}},
        )

    async def _access(self, response: httpcore2.Response, *, conditional: bool) -> Access | NotModified:
        status = response.status
        wait = retry_after(response.headers, self._now())
        if is_challenge(response.headers):
            return Unreachable(Cause.CHALLENGE, status, wait)
        if 200 <= status < 300 and status != 206:  # part of a file is not the file (spec A7)
            body = Body(decoder(response.headers))
            await _receive(response, body)
            content = body.read()
            return Successful(status, content, body.truncated, field(response.headers, b"content-type"))
        if status == 304 and conditional:
            return NotModified()
        if status == 429:
            return Unreachable(Cause.TOO_MANY_REQUESTS, status, wait)
        page = status in (403, 503) and is_html(response.headers)
        if 400 <= status < 500:
            return Unavailable(status, Cause.HTML_PAGE if page else None)
        if 500 <= status < 600:
            return Unreachable(Cause.HTML_PAGE if page else Cause.SERVER_ERROR, status, wait)
        return Unreachable(Cause.BAD_RESPONSE, status)


def _clear_frames(failure: BaseException | None) -> None:
    """Free the local variables of the calls that failed.

    Libraries keep exceptions in local variables, which makes a cycle of an exception and its traceback: a hundred
    objects for each failure would wait for the garbage collector.
    """
    while failure is not None:
        clear_frames(failure.__traceback__)
        failure = failure.__cause__ or failure.__context__


def _conditions(validators: Validators) -> Headers:
    """The fields that make a request conditional.

    Every hop gets them, since the validators came from the last hop of the previous fetch. A server that did not send
    them finds no match.
    """
    written = ((b"If-None-Match", validators.etag), (b"If-Modified-Since", validators.last_modified))
    return [(name, value.encode("latin-1")) for name, value in written if value is not None and _can_be_sent(value)]


def _can_be_sent(value: str) -> bool:
    try:
        return readable(value.encode("latin-1")) == value
    except UnicodeEncodeError:
        return False


async def _receive(response: httpcore2.Response, body: Body) -> None:
    stream: GuardedStream = response.extensions["network_stream"]
    stream.allow(BODY_BYTES)
    pieces = 0
    error: Unreadable | None = None
    try:
        # Breaking out of the loop would leave httpcore2's generators to the garbage collector. Instead the stream is
        # stopped, which ends the loop at the next read; pieces that were read before are ignored.
        async for piece in response.aiter_stream():
            if error is not None or body.truncated:
                continue
            pieces += 1
            if pieces % PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)  # one read from the socket may bring 10,000 pieces
            error = _feed(body, piece, pieces)
            if error is not None or body.truncated:
                stream.stop()
    except ReadingStopped:
        pass
    if error is not None:
        raise error


def _feed(body: Body, piece: bytes, pieces: int) -> Unreadable | None:
    if pieces > PIECES_LIMIT:
        return Unreadable(f"the body arrives in more than {PIECES_LIMIT} pieces")
    try:
        body.feed(piece)
    except Unreadable as error:
        return error
    return None
