"""Fetch one robots.txt, or a file beside it, following redirects, and report what was found (RFC 9309 2.3.1)."""

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from app.fetch.exchange import BodyOf, Exchange
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import (
    CONNECTIONS_PER_ADDRESS,
    AddressRefused,
    HostsShareAddress,
    NameNotResolved,
    Network,
    Resolver,
    TlsFailed,
)
from app.fetch.profile import FetchProfile
from app.fetch.proxy import ProxyFailed
from app.fetch.queue import FetchQueue
from app.fetch.race import AddressBusy
from app.fetch.response import (
    ACCEPT_ENCODING,
    REDIRECTS,
    Headers,
    Unreadable,
    as_field,
    as_request_target,
    body_of,
    read_access,
    read_lifetime,
    read_location,
    read_validators,
    sets_cookie,
)
from app.fetch.sockets import Connect, connect
from robots_core.origin import Origin, Target
from robots_core.robots.access import (
    DETAIL_LIMIT,
    REDIRECT_LIMIT,
    Access,
    Blocked,
    Cause,
    Fetched,
    Unavailable,
    Unreachable,
    Validators,
)

UNCONDITIONAL = Validators()

_CAUSES: tuple[tuple[type[Exception], Cause], ...] = (
    (NameNotResolved, Cause.DNS),
    (TlsFailed, Cause.TLS),
    (ProxyFailed, Cause.PROXY),
    (TimeoutError, Cause.TIMEOUT),
    (OSError, Cause.CONNECTION),
    (Unreadable, Cause.BAD_RESPONSE),
)
_FAILURES = tuple(kind for kind, _ in _CAUSES)


@dataclass(frozen=True, slots=True)
class Received:
    """The response to a request for a page: its status, its fields, and the first part of its body, decoded.

    `body` is None unless the response is a whole file (`body_of`). `location`: where a redirect leads, None for a
    scheme other than http(s), and if the response is not a redirect.
    """

    status: int
    headers: Headers
    body: bytes | None
    truncated: bool
    location: Target | None


Found = TypeVar("Found")


class _Incomplete(Exception):
    """There was no whole response; the text says what is wrong with it."""

    def __init__(self, cause: Cause, detail: str | None) -> None:
        super().__init__(detail or "")
        self.cause = cause


@dataclass(slots=True)
class _Hops:
    """The progress of a fetch: the hop's `target`, the `status` of its response, and that of the `redirect` before it.

    `asked_port` is the port of the caller's URL; `seen` are the URLs of all hops. `set_cookie`: one set a
    cookie. `accept` is what the fetch asks for (RFC 9110 12.5.1).
    """

    target: Target
    profile: FetchProfile
    asked_port: int
    seen: set[str]
    status: int | None = None
    redirect: int | None = None
    set_cookie: bool = False
    accept: bytes = b"text/plain, */*;q=0.1"

    @property
    def final_url(self) -> str | None:
        return None if self.redirect is None else self.target.url

    def refused(self, address: str) -> Access:
        # "Blocked" is an answer about the caller's own host. A redirect to a refused address may lead to a file
        # that disallows, so nothing was learned.
        if self.redirect is None:
            return Blocked(address)
        return Unreachable(Cause.REFUSED_REDIRECT, self.redirect)

    def follow(self, status: int, target: Target | None, ports: PortPolicy) -> Access | None:
        """Follow a redirect (None: to no http(s) URL), or return the result if that is not permitted (spec A8, A9)."""
        if target is None:
            return Unavailable(status, Cause.REFUSED_REDIRECT)
        if len(self.seen) > REDIRECT_LIMIT or target.url in self.seen:
            return Unavailable(status, Cause.COOKIE_LOOP if self.set_cookie else Cause.REDIRECT_LOOP)
        if not ports.admits(target.origin.port, self.asked_port):
            return Unreachable(Cause.REFUSED_REDIRECT, status)
        self.target, self.redirect, self.status = target, status, None
        self.seen.add(target.url)
        return None


class Fetcher:
    """Fetches robots.txt files, within the limits of a FetchQueue; see there for `concurrency`, `slow` and `waiting`.

    Every hop opens a connection of its own and none is kept alive: no connection is judged for one name and used for
    another, and a fetch leaves nothing open, however it ends. `connect` connects to admitted addresses, `per_address`
    times at once to each. `timeout` is in seconds and bounds a whole fetch. `profile` is for origins without one;
    `profiles` gives the others by name.
    """

    def __init__(
        self,
        *,
        profile: FetchProfile,
        guard: AddressGuard,
        ports: PortPolicy,
        resolver: Resolver,
        ssl_context: ssl.SSLContext,
        connect: Connect = connect,
        timeout: float = 10.0,
        concurrency: int = 256,
        slow: int = 512,
        waiting: int = 1024,
        per_address: int = CONNECTIONS_PER_ADDRESS,
        now: Callable[[], float] = time.time,
        profiles: Callable[[], Mapping[str, FetchProfile]] = dict,
    ) -> None:
        self.queue = FetchQueue(timeout=timeout, concurrency=concurrency, slow=slow, waiting=waiting)
        self._default = profile
        self._profiles = profiles
        self._ports = ports
        self._network = Network(guard, resolver, connect, per_address)
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
        return await self._fetch(target, profile, validators, caller)

    async def get(self, target: Target) -> Fetched:
        """Fetch another file as if it were a robots.txt, for the service itself. Raises Busy and nothing else."""
        return await self._fetch(target, self._default, UNCONDITIONAL, "")

    async def read(self, target: Target, limit: int, asked_port: int, caller: str) -> Received | Access:
        """Fetch a page or another file for a caller: one request, whose redirect is left to it. Raises Busy alone.

        `limit`: bytes of the body that are read. `asked_port` is the port of the URL that the caller gave. What is not
        Received says why there is no response.
        """
        if not self._ports.admits(target.origin.port, asked_port):
            return Unreachable(Cause.REFUSED_REDIRECT, detail=f"port {target.origin.port} is not permitted")
        target = Target(target.origin, as_request_target(target.path))
        hops = _Hops(target, self._default, asked_port=asked_port, seen={target.url}, accept=b"*/*")

        async def ask(deadline: float) -> Received:
            status, exchange = await self._ask(hops, (), partial(body_of, limit=limit), deadline)
            body = exchange.body
            content, truncated = (None, False) if body is None else (body.first_part(), body.truncated)
            location = read_location(target, exchange.headers) if status in REDIRECTS else None
            return Received(status, exchange.headers, content, truncated, location)

        return await self._in_slot(hops, caller, ask)

    async def _fetch(self, target: Target, profile: FetchProfile, validators: Validators, caller: str) -> Fetched:
        hops = _Hops(target, profile, asked_port=target.origin.port, seen={target.url})
        found = await self._in_slot(hops, caller, lambda deadline: self._follow(hops, validators, deadline))
        return found if isinstance(found, Fetched) else Fetched(found, final_url=hops.final_url)

    async def _in_slot(
        self, hops: _Hops, caller: str, work: Callable[[float], Awaitable[Found | Access]]
    ) -> Found | Access:
        """Do the work in a slot: what it finds, or how it failed. Raises Busy."""
        try:
            async with self.queue.slot(caller) as deadline:
                return await work(deadline)
        except AddressBusy as error:
            # Nothing was asked. An origin that shares its address with others that stall is not unreachable.
            raise HostsShareAddress(self.queue.busy().retry_after, str(error)) from None
        except AddressRefused as refused:
            return hops.refused(str(refused.address))
        except _Incomplete as failure:
            return Unreachable(failure.cause, hops.status, detail=_bounded(str(failure)))
        except _FAILURES as failure:
            cause = next(cause for kind, cause in _CAUSES if isinstance(failure, kind))
            return Unreachable(cause, hops.status, detail=_detail(failure, hops))

    async def aclose(self) -> None:
        """Begin no more fetches, and wait for those that have begun, `timeout` seconds at most."""
        await self.queue.aclose()

    async def _follow(self, hops: _Hops, validators: Validators, deadline: float) -> Fetched | Access:
        conditions = _conditions(validators)
        while True:
            status, exchange = await self._ask(hops, conditions, body_of, deadline)
            headers = exchange.headers
            hops.set_cookie = hops.set_cookie or sets_cookie(headers)
            if status not in REDIRECTS:
                access = read_access(status, headers, exchange.body, self._now(), conditional=bool(conditions))
                return Fetched(access, hops.final_url, read_validators(headers), read_lifetime(headers))
            refusal = hops.follow(status, read_location(hops.target, headers), self._ports)
            if refusal is not None:
                return refusal

    async def _ask(self, hops: _Hops, conditions: Headers, body_of: BodyOf, deadline: float) -> tuple[int, Exchange]:
        """Make one request: the status of its response, and the exchange, which has been closed."""
        exchange_of = partial(Exchange, self._request(hops, conditions), body_of)
        origin = hops.target.origin
        tls = self._ssl_context if origin.scheme == "https" else None
        async with self._network.open(exchange_of, origin.host, origin.port, tls, deadline) as exchange:
            try:
                await exchange.closed.wait()
            finally:
                hops.status = exchange.status
        if exchange.failure is not None or exchange.status is None:
            raise _Incomplete(exchange.failure or Cause.BAD_RESPONSE, exchange.detail)
        return exchange.status, exchange

    def _request(self, hops: _Hops, conditions: Headers) -> bytes:
        target, origin = hops.target, hops.target.origin
        fields = [
            (b"Host", origin.authority.encode("ascii")),
            *hops.profile.headers(target, self._now()),
            (b"Accept", hops.accept),
            (b"Accept-Encoding", ACCEPT_ENCODING),
            (b"Connection", b"close"),
            *conditions,
        ]
        lines = [b"GET %b HTTP/1.1" % target.path.encode("ascii"), *(b"%b: %b" % written for written in fields)]
        return b"\r\n".join([*lines, b"", b""])


def _detail(failure: Exception, hops: _Hops) -> str | None:
    """What is said of a failure beside its cause; a system's own text may contain an address."""
    if isinstance(failure, TlsFailed | ProxyFailed) or not isinstance(failure, OSError):
        return _bounded(str(failure))
    if failure.errno is not None:
        return _bounded(os.strerror(failure.errno).lower())
    if isinstance(failure, TimeoutError):
        return "there was no response in time" if hops.status is None else "the response did not end in time"
    return None


def _bounded(text: str | None) -> str | None:
    text = "".join(filter(str.isprintable, text or ""))
    return text if len(text) <= DETAIL_LIMIT else f"{text[: DETAIL_LIMIT - 1]}…"


def _conditions(validators: Validators) -> Headers:
    """The fields that make a request conditional.

    Every hop gets them, since the validators came from the last hop of the previous fetch. A server that did not send
    them finds no match.
    """
    known = ((b"If-None-Match", validators.etag), (b"If-Modified-Since", validators.last_modified))
    return [(name, value) for name, text in known if text is not None and (value := as_field(text)) is not None]
