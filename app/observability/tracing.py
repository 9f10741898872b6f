"""Traces for OpenTelemetry: a span for each request, decision and fetch; the extra `otel` brings what sends them.

Nothing here is reached, and nothing costs anything, unless variables of OpenTelemetry ask for it. No span holds the URL
that was asked about, or the agent: they are the caller's own affair.
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
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import __version__
from app.observability.metrics import Metrics, State, labels
from app.robots.access import Access, NotModified

NAME = "robots-decisions"
"""What the service is called where OTEL_SERVICE_NAME calls it nothing else."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_log = logging.getLogger(__name__)


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether these variables ask for traces: by an endpoint, or by naming `otlp` as the exporter."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter:
        return exporter == "otlp"
    return any(environment.get(name, "").strip() for name in _ENDPOINTS)


@dataclass(frozen=True, slots=True)
class Spans:
    """Where spans go; `end` sends the last of them, for which it may wait seconds."""

    provider: TracerProvider
    end: Callable[[], None]


def spans_sent() -> Spans | None:
    """Spans go where the environment says; None where nothing asks for traces, or nothing can send them."""
    if not wanted(os.environ):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SendingProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        # No reason not to start: platforms set these variables for all that they run.
        _log.warning("OTEL_* variables ask for traces, and %s is not installed: the extra `otel` brings it", error.name)
        return None
    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or NAME, "service.version": __version__}
    sending = SendingProvider(resource=Resource.create(named))
    sending.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(sending, sending.shutdown)


@asynccontextmanager
async def ended(spans: Spans | None) -> AsyncIterator[None]:
    """At the end of the block, send what was not sent yet."""
    yield
    if spans is not None:
        await asyncio.to_thread(spans.end)


def metrics_of(read_state: Callable[[], State], spans: Spans | None) -> Metrics:
    """What counts events, and tells them where there are spans."""
    return Metrics(read_state) if spans is None else TracedMetrics(read_state, spans)


def follow_requests(app: Starlette, spans: Spans | None) -> None:
    """Tell the requests of `app` where there are spans; it is to be the last of all that looks at them."""
    if spans is not None:
        app.add_middleware(TracedRequests, spans=spans)


class TracedMetrics(Metrics):
    """Also tells each event as a span that ends now, in the request that it belongs to."""

    def __init__(self, read_state: Callable[[], State], spans: Spans) -> None:
        super().__init__(read_state)
        self._tracer = spans.provider.get_tracer(NAME, __version__)

    def decided(
        self, verdict: str, reason: str, source: str, dialect: str, seconds: float | None = None, times: int = 1
    ) -> None:
        """A span `decision`."""
        super().decided(verdict, reason, source, dialect, seconds, times)
        told: dict[str, str | int] = {
            "verdict": verdict,
            "reason": reason,
            "source": source,
            "dialect": dialect,
            "times": times,
        }
        self._tell("decision", told, seconds or 0.0)

    def fetched(self, found: Access | NotModified, seconds: float) -> None:
        """A span `fetch`."""
        super().fetched(found, seconds)
        told = dict(zip(("outcome", "cause", "status"), labels(found), strict=True))
        self._tell("fetch", {name: value for name, value in told.items() if value}, seconds)

    def _tell(self, name: str, told: Mapping[str, str | int], seconds: float) -> None:
        now = time.time_ns()
        attributes = {f"robots.{key}": value for key, value in told.items()}
        self._tracer.start_span(name, attributes=attributes, start_time=now - int(seconds * 1e9)).end(now)


class TracedRequests:
    """A span for each request, below that of its `traceparent` (W3C Trace Context); the outermost of all."""

    def __init__(self, app: ASGIApp, spans: Spans) -> None:
        self._app = app
        self._tracer = spans.provider.get_tracer(NAME, __version__)
        self._context = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        span = self._tracer.start_span(
            scope["method"],
            context=self._context.extract(headers),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": scope["method"]},
        )

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                status: int = message["status"]
                span.set_attribute("http.response.status_code", status)
                for name, value in message.get("headers", ()):
                    if name == b"x-request-id":  # by which the lines of the log are found
                        span.set_attribute("robots.request_id", value.decode("latin-1"))
                if status >= 500:
                    span.set_status(Status(StatusCode.ERROR))
            await send(message)

        with trace.use_span(span, end_on_exit=True):
            await self._app(scope, receive, noted)
            route = getattr(scope.get("route"), "path", None)
            if route is not None:
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.route", route)
