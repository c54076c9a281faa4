"""Histograms over tasted answers, under the names of the GenAI conventions."""

from typing import Any

from routeproof.canary.otlp.names import (
    CLIENT_BOUNDS_S,
    FIRST_TOKEN_BOUNDS_S,
    LEGACY_TOKENS,
    PER_TOKEN_BOUNDS_S,
    SERVER_DURATION_BOUNDS_S,
    TOKEN_BOUNDS,
    Convention,
    spelled,
)
from routeproof.canary.otlp.rows import Seen, first_chunk_s, named
from routeproof.canary.otlp.wire import Histogram, attributes
from routeproof.records.outcome import SERVED


class Timings:
    """Histograms over tasted answers, under current names.

    The ``client`` ones are about the leg to the upstream, the ``server`` ones about
    what the client of the gateway saw; the relay's own share is well below the
    smallest bound, so both hold the same stamps.
    """

    def __init__(self) -> None:
        self.histograms: dict[str, Histogram] = {
            "gen_ai.client.inference.duration": Histogram(CLIENT_BOUNDS_S, "s"),
            "gen_ai.client.inference.time_to_first_chunk": Histogram(
                CLIENT_BOUNDS_S, "s"
            ),
            "gen_ai.client.inference.time_per_output_chunk": Histogram(
                CLIENT_BOUNDS_S, "s"
            ),
            "gen_ai.client.inference.operation.input_tokens": Histogram(
                TOKEN_BOUNDS, "{token}"
            ),
            "gen_ai.client.inference.operation.output_tokens": Histogram(
                TOKEN_BOUNDS, "{token}"
            ),
            "gen_ai.server.request.duration": Histogram(SERVER_DURATION_BOUNDS_S, "s"),
            "gen_ai.server.time_to_first_token": Histogram(FIRST_TOKEN_BOUNDS_S, "s"),
            "gen_ai.server.time_per_output_token": Histogram(PER_TOKEN_BOUNDS_S, "s"),
        }

    def add(self, one: Seen) -> None:
        """Take one answer in. Failed ones have a duration and nothing else."""
        record = one.sample.record
        clock, chunks = record.clock, record.stream.chunk_s
        values: dict[str, float | None] = {}
        if clock.end_s is not None:
            took_s = clock.end_s - clock.intended_s
            values["gen_ai.client.inference.duration"] = took_s
            values["gen_ai.server.request.duration"] = took_s
        if record.answer.outcome in SERVED:
            first_s = first_chunk_s(one.sample)
            values["gen_ai.client.inference.time_to_first_chunk"] = first_s
            values["gen_ai.server.time_to_first_token"] = first_s
            rest_s = chunks[-1] - chunks[0] if len(chunks) > 1 else None
            if rest_s is not None and one.sample.stratum == "stream":
                per_chunk = rest_s / (len(chunks) - 1)
                values["gen_ai.client.inference.time_per_output_chunk"] = per_chunk
                tokens = record.usage.output_tokens
                if tokens is not None and tokens > 1:
                    per_token = rest_s / (tokens - 1)
                    values["gen_ai.server.time_per_output_token"] = per_token
            usage = record.usage
            values["gen_ai.client.inference.operation.input_tokens"] = (
                usage.prompt_tokens
            )
            values["gen_ai.client.inference.operation.output_tokens"] = (
                usage.output_tokens
            )
        for name, value in values.items():
            if value is not None:
                self.histograms[name].add(float(value), one.common)

    def data(
        self, convention: Convention, began_ns: int, now_ns: int
    ) -> list[dict[str, Any]]:
        """All metrics on the wire, under the names of a convention."""
        found = []
        for name, histogram in self.histograms.items():
            if not histogram.rows:
                continue
            if name.startswith("gen_ai.client.inference.operation."):
                found += self._tokens(name, histogram, convention, began_ns, now_ns)
                continue
            for each in spelled(name, convention):
                found.append(
                    _renamed(histogram, convention).data(each, began_ns, now_ns)
                )
        return found

    @staticmethod
    def _tokens(
        name: str,
        histogram: Histogram,
        convention: Convention,
        began_ns: int,
        now_ns: int,
    ) -> list[dict[str, Any]]:
        """Token counts: a histogram and a counter now, one typed histogram before."""
        kind = name.rpartition(".")[2].removesuffix("_tokens")
        renamed = _renamed(histogram, convention)
        found = []
        if convention != "legacy":
            found.append(renamed.data(name, began_ns, now_ns))
            points = [
                {
                    "attributes": attributes(dict(key)),
                    "startTimeUnixNano": str(began_ns),
                    "timeUnixNano": str(now_ns),
                    "asInt": str(round(row.total)),
                }
                for key, row in renamed.rows.items()
            ]
            found.append(
                {
                    "name": f"gen_ai.client.inference.usage.{kind}_tokens",
                    "unit": "{token}",
                    "sum": {
                        "aggregationTemporality": 2,
                        "isMonotonic": True,
                        "dataPoints": points,
                    },
                }
            )
        if convention != "current":
            typed = Histogram(histogram.bounds, histogram.unit)
            typed.rows = {
                (*key, ("gen_ai.token.type", kind)): row
                for key, row in renamed.rows.items()
            }
            found.append(typed.data(LEGACY_TOKENS, began_ns, now_ns))
        return found


def _renamed(histogram: Histogram, convention: Convention) -> Histogram:
    """The same counts with attributes under the names of a convention."""
    made = Histogram(histogram.bounds, histogram.unit)
    made.rows = {
        tuple(named(dict(key), convention).items()): row
        for key, row in histogram.rows.items()
    }
    return made
