"""Traces and metrics by OpenTelemetry: requests, channels, embedder calls, jobs and waiting for the pool."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from conftest import PATIENT, http_client, new_key
from recollect.tracing import Tracing, span, tracing, tracing_to
from recollect.wiring import connected
from support.service.made_settings import make_settings

CANARY = "canary-what-somebody-said"
PARENT = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def seen():
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    with tracing_to(SimpleSpanProcessor(exporter), reader, 1.0, "test"):
        yield exporter, reader
    assert Tracing.tracer is None


@pytest.fixture
async def traced(seen, addresses, embedder):
    """A Recollect that was opened when traces were on."""
    async with connected(make_settings(embedder="fake", **PATIENT), addresses, embedder) as running:
        yield running


def measured(reader):
    data = reader.get_metrics_data()
    return {
        metric.name: {point.attributes["name"]: point.count for point in metric.data.data_points}
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


@pytest.mark.promise("Traces tell of requests, channels, embedder calls, jobs and the pool, and never content")
async def test_a_request_and_a_job_are_traced_with_their_parts(traced, seen):
    exporter, reader = seen
    key, secret = await new_key(traced)
    async with http_client(traced, secret) as http:
        body = {"agent": "ada", "memories": [{"content": f"{CANARY} waters the plants"}]}
        assert (await http.post("/v1/memories", json=body)).status_code == 201
        exporter.clear()
        headers = {"traceparent": f"00-{PARENT}-b7ad6b7169203331-01", "x-request-id": "r1"}
        answer = await http.post("/v1/recall", json={"agent": "ada", "text": CANARY}, headers=headers)
        assert answer.json()["hits"]
    await traced.work(until_empty=True)
    spans = exporter.get_finished_spans()
    [request] = [each for each in spans if each.name == "POST /v1/recall"]
    assert f"{request.context.trace_id:032x}" == PARENT, "part of the trace of who asks"
    told = {name.removeprefix("recollect."): value for name, value in request.attributes.items()}
    tenant = (await traced.operator.act_for("default")).tenant_id
    assert told == {"request_id": "r1", "status": 200, "route": "/v1/recall", "tenant": tenant, "key": key.name}
    parts = {each.name for each in spans if each.parent and each.parent.span_id == request.context.span_id}
    assert {"channels", "embed", "pool_wait"} <= parts
    assert any(each.name.startswith("job ") for each in spans)
    assert CANARY not in "".join(each.to_json() for each in spans)
    figures = measured(reader)
    assert figures["recollect.request.duration"]["POST /v1/recall"] == 1
    assert {"recollect.channels.duration", "recollect.embed.duration", "recollect.pool_wait.duration"} <= set(figures)
    assert "recollect.job.duration" in figures


async def test_an_error_is_named_by_its_class_alone(seen):
    with pytest.raises(ValueError, match=CANARY), span("embed"):
        raise ValueError(CANARY)
    [failed] = seen[0].get_finished_spans()
    assert failed.attributes == {"recollect.error": "ValueError"}
    assert failed.events == ()
    assert CANARY not in failed.to_json()


def test_without_an_address_nothing_is_loaded():
    program = """
import sys
import recollect.doors.cli.server
from recollect.tracing import Tracing, begin, span, tracing
with tracing("", 1.0, "serve"), span("request") as traced:
    traced.note(status=200)
    begin("pool_wait")()
    assert Tracing.tracer is None
loaded = [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_with_an_address_traces_go_there():
    with tracing("http://127.0.0.1:9/", 0.0, "serve"):
        assert Tracing.tracer is not None
    assert Tracing.tracer is None
