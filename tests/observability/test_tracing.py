"""Traces: their spans, and the variables that enable them."""

import json

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.observability.logs import JsonFormatter
from app.observability.tracing import Spans, is_enabled
from tests.api.service import running
from tests.origins import serve, text


class Exporter:
    """An exporter that stores spans in memory."""

    def __init__(self) -> None:
        self._exported = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exported))
        self.ended = False
        self.spans = Spans(provider, self._end)

    def _end(self) -> None:
        self.ended = True

    def by_name(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exported.get_finished_spans()}


@pytest.mark.usefixtures("store_client")
async def test_request_decision_and_fetch_are_one_trace(store_url: str) -> None:
    exporter = Exporter()
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with (
        serve(text(200, "User-agent: *\nDisallow: /")) as origin,
        running(store_url, spans=exporter.spans) as service,
    ):
        query = {"url": f"{origin.url}/secret", "agent": "ExampleBot"}
        answer = await service.client.get("/v1/allowed", params=query, headers={"traceparent": caller})
        assert answer.status_code == 200
    spans = exporter.by_name()
    request, decision, fetch = spans["GET /v1/allowed"], spans["decision"], spans["fetch"]
    assert request.context is not None
    assert request.parent is not None
    assert f"{request.context.trace_id:032x}-{request.parent.span_id:016x}" == caller[3:-3]
    for span in (decision, fetch):
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id
    assert request.attributes is not None
    assert dict(request.attributes) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/v1/allowed",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "server.address": "localhost",
        "robots.request_id": answer.headers["x-request-id"],
    }
    assert decision.attributes is not None
    assert (decision.attributes["robots.verdict"], decision.attributes["robots.source"]) == ("disallow", "fetched")
    assert fetch.attributes is not None
    assert dict(fetch.attributes) == {"robots.outcome": "successful", "robots.status": "2xx"}
    everything = "".join(f"{span.name}{span.attributes}" for span in spans.values())
    assert "secret" not in everything
    assert "ExampleBot" not in everything
    assert exporter.ended


@pytest.mark.usefixtures("store_client")
async def test_errors_and_unknown_methods_are_named_as_the_conventions_say(store_url: str) -> None:
    exporter = Exporter()
    async with running(store_url, spans=exporter.spans) as service:
        await service.client.request("SECRET", "/healthz")
        service.app.state.services.stopping.set()
        await service.client.get("/readyz")
    spans = exporter.by_name()
    assert "SECRET" not in "".join(f"{span.name}{span.attributes}" for span in spans.values())
    [unknown] = [span for name, span in spans.items() if name.startswith("_OTHER") or name == "HTTP"]
    assert unknown.attributes is not None
    assert unknown.attributes["http.request.method"] == "_OTHER"
    failed = spans["GET /readyz"].attributes
    assert failed is not None
    assert (failed["http.response.status_code"], failed["error.type"]) == (503, "503")


@pytest.mark.usefixtures("store_client")
async def test_log_lines_name_the_recorded_trace(store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    exporter = Exporter()
    formatter, logged = JsonFormatter(), []
    caplog.handler.setFormatter(formatter)
    with caplog.at_level("INFO", logger="app.access"):
        async with running(store_url, spans=exporter.spans) as service:
            await service.client.get("/v1/agents")
            logged = [json.loads(line) for line in caplog.text.splitlines() if '"app.access"' in line]
    context = exporter.by_name()["GET /v1/agents"].context
    assert context is not None
    assert [line["trace_id"] for line in logged] == [f"{context.trace_id:032x}"]


@pytest.mark.parametrize(
    ("environment", "enabled"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
    ],
)
def test_environment_enables_tracing(environment: dict[str, str], enabled: bool) -> None:
    assert is_enabled(environment) is enabled
