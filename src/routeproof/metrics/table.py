"""The metric table: the first file to open for a new one.

A metric is one vectorised function ``Records -> Column`` and one line here.
"""

from collections.abc import Callable
from typing import Literal

from routeproof.metrics import timing
from routeproof.metrics.metric import Metric
from routeproof.records.columns import Column, Records


def _metric(
    name: str,
    unit: str,
    better: Literal["lower", "higher"],
    of: Callable[[Records], Column],
    *,
    formula: str,
    needs: str,
) -> Metric:
    return Metric(
        name=name, unit=unit, better=better, formula=formula, needs=needs, of=of
    )


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _metric(
            "time_to_first_token",
            "s",
            "lower",
            timing.time_to_first_token,
            formula="first chunk with a token of any kind - intended start",
            needs="a streamed answer",
        ),
        _metric(
            "time_to_first_visible_token",
            "s",
            "lower",
            timing.time_to_first_visible_token,
            formula="first chunk with visible text or a tool call - intended start",
            needs="a streamed answer",
        ),
        _metric(
            "time_per_output_token",
            "s",
            "lower",
            timing.time_per_output_token,
            formula="(last chunk - first chunk) / (n - k1); k1 = tokens of the first "
            "chunk where the server tells, else 1",
            needs="a streamed answer of two chunks or more, and its token count",
        ),
        _metric(
            "chunk_gap",
            "s",
            "lower",
            timing.chunk_gap,
            formula="(last chunk - first chunk) / (chunks - 1)",
            needs="a streamed answer of two chunks or more",
        ),
        _metric(
            "tokens_per_chunk",
            "tokens",
            "higher",
            timing.tokens_per_chunk,
            formula="output tokens / content chunks",
            needs="a streamed answer and its token count",
        ),
        _metric(
            "longest_stall",
            "s",
            "lower",
            timing.longest_stall,
            formula="largest gap between two chunks of the request",
            needs="a streamed answer of two chunks or more",
        ),
        _metric(
            "request_latency",
            "s",
            "lower",
            timing.request_latency,
            formula="last content chunk (end, when not streamed) - intended start",
            needs="an answer",
        ),
        _metric(
            "service_latency",
            "s",
            "lower",
            timing.service_latency,
            formula="last content chunk - moment the client began",
            needs="an answer",
        ),
        _metric(
            "dispatch_delay",
            "s",
            "lower",
            timing.dispatch_delay,
            formula="moment the client began - intended start",
            needs="a request that was begun",
        ),
        _metric(
            "queue_time",
            "s",
            "lower",
            timing.served_number("queue_s"),
            formula="waiting in the engine, as it reports",
            needs="an engine that reports it per request",
        ),
        _metric(
            "prefill_time",
            "s",
            "lower",
            timing.served_number("prefill_s"),
            formula="reading the prompt, as the engine reports",
            needs="an engine that reports it per request",
        ),
        _metric(
            "decode_time",
            "s",
            "lower",
            timing.served_number("decode_s"),
            formula="writing the answer, as the engine reports",
            needs="an engine that reports it per request",
        ),
        _metric(
            "decode_throughput",
            "tokens/s",
            "higher",
            timing.decode_throughput,
            formula="1 / time_per_output_token",
            needs="as time_per_output_token",
        ),
        _metric(
            "output_token_throughput",
            "tokens/s",
            "higher",
            timing.output_token_throughput,
            formula="output tokens / request latency; of a load level: output tokens "
            "per second of its window",
            needs="an answer and its token count",
        ),
    )
}
