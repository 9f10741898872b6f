"""OpenTelemetry traces: a span for each request, decision and fetch. The extra `otel` installs the exporter.

Tracing costs nothing unless OpenTelemetry's environment variables enable it. No span holds the URL or the agent of a
question, which are private to the caller.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import __version__
from app.loop.request import TRACE_ID
from app.observability.metrics import Metrics, ServiceState, labels
from robots_core.robots.access import Access, NotModified

METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
"""Methods by which spans are named; others are `_OTHER`, as the semantic conventions say."""

NAME = "robots-decisions"
"""The service name, unless OTEL_SERVICE_NAME sets another."""

_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_log = logging.getLogger(__name__)


def is_enabled(environment: Mapping[str, str]) -> bool:
    """Whether these variables enable traces: they set an endpoint, or `otlp` as the exporter."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter:
        return exporter == "otlp"
    return any(environment.get(name, "").strip() for name in _ENDPOINTS)


@dataclass(frozen=True, slots=True)
class Spans:
    """Where spans go; `end` sends those that remain, which may take seconds."""

    provider: TracerProvider
    end: Callable[[], None]


def spans_from_environment() -> Spans | None:
    """The destination that the environment sets; None without one, or without the extra `otel`."""
    if not is_enabled(os.environ):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SendingProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        # Start anyway: platforms set these variables for every workload.
        _log.warning("OTEL_* variables enable traces, but %s is not installed: install the extra `otel`", error.name)
        return None
    for name in _PROTOCOLS:
        protocol = os.environ.get(name, "").strip()
        if protocol not in ("", "http/protobuf"):
            _log.warning("%s=%s has no effect: traces are sent by http/protobuf, usually to port 4318", name, protocol)
    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or NAME, "service.version": __version__}
    sending = SendingProvider(resource=Resource.create(named))
    sending.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(sending, sending.shutdown)


@asynccontextmanager
async def flushing(spans: Spans | None) -> AsyncIterator[None]:
    """Send the remaining spans at the end of the block."""
    yield
    if spans is not None:
        await asyncio.to_thread(spans.end)


def metrics_for(read_state: Callable[[], ServiceState], spans: Spans | None) -> Metrics:
    """The metrics; with `spans`, events are also traced."""
    return Metrics(read_state) if spans is None else TracedMetrics(read_state, spans)


class TracedMetrics(Metrics):
    """Metrics that also record each event as a span that ends now, within the current request."""

    def __init__(self, read_state: Callable[[], ServiceState], spans: Spans) -> None:
        super().__init__(read_state)
        self._tracer = spans.provider.get_tracer(NAME, __version__)

    def decided(
        self, verdict: str, reason: str, source: str, dialect: str, seconds: float | None = None, times: int = 1
    ) -> None:
        """Count it, and record a span `decision`."""
        super().decided(verdict, reason, source, dialect, seconds, times)
        attributes = {"verdict": verdict, "reason": reason, "source": source, "dialect": dialect}
        self._record("decision", {**attributes, "times": times}, seconds or 0.0)

    def fetched(self, found: Access | NotModified, seconds: float) -> None:
        """Count it, and record a span `fetch`."""
        super().fetched(found, seconds)
        attributes = dict(zip(("outcome", "cause", "status"), labels(found), strict=True))
        self._record("fetch", {name: value for name, value in attributes.items() if value}, seconds)

    def _record(self, name: str, attributes: Mapping[str, str | int], seconds: float) -> None:
        now = time.time_ns()
        prefixed = {f"robots.{key}": value for key, value in attributes.items()}
        self._tracer.start_span(name, attributes=prefixed, start_time=now - int(seconds * 1e9)).end(now)


class TracedRequests:
    """Records a span for each request, a child of its `traceparent` (W3C Trace Context). The outermost middleware."""

    def __init__(self, app: ASGIApp, spans: Spans) -> None:
        self._app = app
        self._tracer = spans.provider.get_tracer(NAME, __version__)
        self._context = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        span = self._tracer.start_span(
            method if method in METHODS else "HTTP",
            context=self._context.extract(headers),
            kind=SpanKind.SERVER,
            attributes=_server_attributes(scope, method),
        )

        async def send_and_record(message: Message) -> None:
            if message["type"] == "http.response.start":
                status: int = message["status"]
                span.set_attribute("http.response.status_code", status)
                for name, value in message.get("headers", ()):
                    if name == b"x-request-id":  # finds the log lines of the request
                        span.set_attribute("robots.request_id", value.decode("latin-1"))
                if status >= 500:
                    span.set_attribute("error.type", str(status))
                    span.set_status(Status(StatusCode.ERROR))
            await send(message)

        token = TRACE_ID.set(f"{span.get_span_context().trace_id:032x}")
        try:
            with trace.use_span(span, end_on_exit=True):
                await self._app(scope, receive, send_and_record)
                route = getattr(scope.get("route"), "path", None)
                if route is not None:
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.route", route)
        finally:
            TRACE_ID.reset(token)


def _server_attributes(scope: Scope, method: str) -> dict[str, str | int]:
    """What the semantic conventions of HTTP servers name, without the path, the query and the addresses of callers."""
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope.get("http_version", "1.1"),
    }
    server = scope.get("server")
    if server is not None:
        attributes["server.address"] = server[0]
        if server[1] is not None:
            attributes["server.port"] = server[1]
    return attributes
