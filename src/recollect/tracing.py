"""Spans and durations of what takes time, for OpenTelemetry; until it is started, nothing is loaded or measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from recollect.loading import load

NAME, EXTRA = "recollect", "traces"
UNIT = "s"
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60)


class OpenSpan:
    """Something that takes time, while it does; of one that is not traced nothing is kept."""

    name = ""

    def note(self, **attributes: str | float) -> None:
        """Add attributes that are known now: codes and numbers, never content."""

    def rename(self, name: str) -> None:
        """Set the name, if it is known late."""


class TracedSpan(OpenSpan):
    """A span of OpenTelemetry."""

    def __init__(self, span: Any, name: str) -> None:  # noqa: ANN401 - the library is loaded late
        self._span, self.name = span, name

    def note(self, **attributes: str | float) -> None:
        """Add attributes that are known now."""
        self._span.set_attributes({f"{NAME}.{name}": value for name, value in attributes.items()})

    def rename(self, name: str) -> None:
        """Set the name."""
        self.name = name
        self._span.update_name(name)


class Tracer:
    """Makes spans by OpenTelemetry, and measures how long they last by their kind."""

    def __init__(self, tracer: Any, meter: Any, propagator: Any) -> None:  # noqa: ANN401 - the library is loaded late
        self._tracer, self._meter, self._propagator = tracer, meter, propagator
        self._durations: dict[str, Any] = {}

    @contextmanager
    def span(self, kind: str, name: str, sent: Mapping[str, str] | None) -> Iterator[OpenSpan]:
        """Trace what happens in the block; as a part of what the sender of these headers traces, if it says so."""
        context = None if sent is None else self._propagator.extract(sent)
        began = time.perf_counter()
        # An error is recorded by its class alone: its text may quote content.
        options = {"context": context, "record_exception": False, "set_status_on_exception": False}
        with self._tracer.start_as_current_span(name or kind, **options) as made:
            traced = TracedSpan(made, name or kind)
            try:
                yield traced
            except BaseException as problem:
                traced.note(error=type(problem).__name__)
                raise
            finally:
                self._measure(kind, traced.name, time.perf_counter() - began)

    def begin(self, kind: str) -> Callable[[], None]:
        """Begin a span while other parts continue; call the returned function when it ends."""
        made, began = self._tracer.start_span(kind), time.perf_counter()

        def end_span() -> None:
            made.end()
            self._measure(kind, kind, time.perf_counter() - began)

        return end_span

    def _measure(self, kind: str, name: str, seconds: float) -> None:
        if kind not in self._durations:
            says = f"How long each {kind} took."
            made = self._meter.create_histogram(
                f"{NAME}.{kind}.duration", UNIT, says, explicit_bucket_boundaries_advisory=BUCKETS
            )
            self._durations[kind] = made
        self._durations[kind].record(seconds, {"name": name})


class Tracing:
    """The tracer of this process, if there is one."""

    tracer: Tracer | None = None


UNTRACED = nullcontext(OpenSpan())


def span(kind: str, name: str = "", sent: Mapping[str, str] | None = None) -> AbstractContextManager[OpenSpan]:
    """Trace what happens in the block, if traces are on."""
    return UNTRACED if Tracing.tracer is None else Tracing.tracer.span(kind, name, sent)


def begin(kind: str) -> Callable[[], None]:
    """Begin to measure something, if traces are on; call the returned function when it ends."""
    return do_nothing if Tracing.tracer is None else Tracing.tracer.begin(kind)


def do_nothing() -> None:
    """Do nothing: traces are off."""


@contextmanager
def tracing(url: str, share: float, role: str) -> Iterator[None]:
    """Send traces and metrics to a receiver of OTLP over HTTP, for as long as the context lasts; not without one."""
    if not url:
        yield
        return
    base = url.rstrip("/")
    spans = load("opentelemetry.exporter.otlp.proto.http.trace_exporter", EXTRA)
    metrics = load("opentelemetry.exporter.otlp.proto.http.metric_exporter", EXTRA)
    processors = load("opentelemetry.sdk.trace.export", EXTRA)
    readers = load("opentelemetry.sdk.metrics.export", EXTRA)
    processor = processors.BatchSpanProcessor(spans.OTLPSpanExporter(f"{base}/v1/traces"))
    reader = readers.PeriodicExportingMetricReader(metrics.OTLPMetricExporter(f"{base}/v1/metrics"))
    with tracing_to(processor, reader, share, role):
        yield


@contextmanager
def tracing_to(processor: Any, reader: Any, share: float, role: str) -> Iterator[None]:  # noqa: ANN401 - loaded late
    """Trace to any processor of spans and reader of metrics."""
    traces = load("opentelemetry.sdk.trace", EXTRA)
    sampling = load("opentelemetry.sdk.trace.sampling", EXTRA)
    resources = load("opentelemetry.sdk.resources", EXTRA)
    propagation = load("opentelemetry.trace.propagation.tracecontext", EXTRA)
    # The variables of OpenTelemetry, such as OTEL_SERVICE_NAME, say more of the process.
    own = resources.Resource({"service.name": f"{NAME}-{role}"})
    resource = own.merge(resources.OTELResourceDetector().detect())
    sampler = sampling.ParentBased(sampling.TraceIdRatioBased(share))
    provider = traces.TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    meters = load("opentelemetry.sdk.metrics", EXTRA).MeterProvider([reader], resource, shutdown_on_exit=False)
    propagator = propagation.TraceContextTextMapPropagator()
    Tracing.tracer = Tracer(provider.get_tracer(NAME), meters.get_meter(NAME), propagator)
    try:
        yield
    finally:
        Tracing.tracer = None
        provider.shutdown()
        meters.shutdown()
