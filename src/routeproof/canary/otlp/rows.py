"""One tasted answer as OTLP rows: a span, and an event for each of its signals."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routeproof.canary.otlp.names import Convention, spelled
from routeproof.canary.otlp.wire import attributes
from routeproof.canary.samples.spool import Sample
from routeproof.canary.tasting.tee import Copy
from routeproof.records.outcome import SERVED

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
CLIENT_SPAN = 3
STATUS_ERROR = 2
INFO = 9
OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "text_completion",
    "/v1/responses": "chat",
    "/v1/embeddings": "embeddings",
}
ASKED_FIELDS = {
    "gen_ai.request.seed": ("seed", int),
    "gen_ai.request.temperature": ("temperature", float),
    "gen_ai.request.top_p": ("top_p", float),
    "gen_ai.request.max_tokens": ("max_tokens", int),
    "gen_ai.request.frequency_penalty": ("frequency_penalty", float),
    "gen_ai.request.presence_penalty": ("presence_penalty", float),
}
MODEL_CHARS = 128


@dataclass(frozen=True, slots=True)
class Seen:
    """A tasted answer on its way out, without any of its text.

    Attributes:
        common: Attributes of every row about it, in current names.
        began_ns, ended_ns: Unix nanoseconds.
    """

    sample: Sample
    common: Mapping[str, Any]
    request: Mapping[str, Any]
    response_id: str | None
    trace: str | None
    began_ns: int
    ended_ns: int


def seen(sample: Sample, copy: Copy, given: Mapping[str, Any], offset_ns: int) -> Seen:
    """What is exported of an answer.

    Args:
        sample: Scored.
        copy: The exchange.
        given: Attributes of the route and its server.
        offset_ns: Unix time minus monotonic time.
    """
    outcome = sample.record.answer.outcome
    model = copy.body.get("model")
    common = {
        **given,
        "gen_ai.operation.name": OPERATIONS.get(copy.path, "chat"),
        "gen_ai.request.model": str(model)[:MODEL_CHARS] if model else None,
        "error.type": None if outcome in SERVED else _error_type(sample),
    }
    return Seen(
        sample,
        common,
        _request(copy.body, sample),
        copy.response_id(),
        copy.trace,
        copy.began_ns + offset_ns,
        (copy.capture.end_ns or copy.began_ns) + offset_ns,
    )


def _error_type(sample: Sample) -> str:
    status = sample.record.answer.http_status
    outcome = sample.record.answer.outcome
    return str(status) if outcome == "http_error" and status else outcome


def _request(body: Mapping[str, Any], sample: Sample) -> dict[str, Any]:
    found: dict[str, Any] = {"gen_ai.request.stream": sample.stratum == "stream"}
    for name, (field, kind) in ASKED_FIELDS.items():
        value = body.get(field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = kind(value)
    form = sample.request.get("response_format")
    if isinstance(form, Mapping):
        is_text = form.get("type") in (None, "text")
        found["gen_ai.output.type"] = "text" if is_text else "json"
    choices = body.get("n")
    if isinstance(choices, int) and choices != 1:
        found["gen_ai.request.choice.count"] = choices
    return found


def trace_of(one: Seen) -> tuple[str, str, str | None] | None:
    """Trace, span and parent id; ``None`` when the caller asked for no trace of it.

    Without a caller's trace the ids come from the request id, so that they can be
    found again.
    """
    digest = hashlib.blake2b(one.sample.request_id.encode(), digest_size=24).hexdigest()
    found = _TRACEPARENT.fullmatch(one.trace or "")
    if found is None or set(found[1]) == {"0"} or set(found[2]) == {"0"}:
        return digest[:32], digest[32:], None
    if not int(found[3], 16) & 1:
        return None
    return found[1], digest[32:], found[2]


def named(given: Mapping[str, Any], convention: Convention) -> dict[str, Any]:
    """Attributes under the names of a convention."""
    return {
        name: value
        for current, value in given.items()
        for name in spelled(current, convention)
    }


def span(one: Seen, convention: Convention) -> dict[str, Any] | None:
    """The span of one answer; ``None`` when the caller asked for none."""
    ids = trace_of(one)
    if ids is None:
        return None
    trace_id, span_id, parent = ids
    record, is_served = one.sample.record, "error.type" not in _known(one.common)
    stream, usage = record.stream, record.usage
    reason = record.answer.finish_reason
    given = {
        **one.common,
        **one.request,
        "gen_ai.response.id": one.response_id,
        "gen_ai.response.finish_reasons": [reason or "stop"]
        if is_served
        else ["error"],
        "gen_ai.response.time_to_first_chunk": first_chunk_s(one.sample),
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "openai.response.system_fingerprint": record.engine.fingerprint,
        "routeproof.draft.drafted_tokens": record.engine.drafted,
        "routeproof.draft.accepted_tokens": record.engine.accepted,
        "routeproof.stream.chunks": len(stream.chunk_s) or None,
    }
    made: dict[str, Any] = {
        "traceId": trace_id,
        "spanId": span_id,
        "name": " ".join(
            str(part)
            for part in (
                one.common["gen_ai.operation.name"],
                one.common["gen_ai.request.model"],
            )
            if part
        ),
        "kind": CLIENT_SPAN,
        "startTimeUnixNano": str(one.began_ns),
        "endTimeUnixNano": str(one.ended_ns),
        "attributes": attributes(named(given, convention)),
        "status": {} if is_served else {"code": STATUS_ERROR},
    }
    return made if parent is None else {**made, "parentSpanId": parent}


def _known(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def evaluations(
    one: Seen, signals: Mapping[str, bool | None], convention: Convention
) -> list[dict[str, Any]]:
    """One ``gen_ai.evaluation.result`` event per signal that said something."""
    ids = trace_of(one)
    if ids is None:
        return []
    rows = []
    for name, bad in signals.items():
        if bad is None:
            continue
        given = {
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.value": 0.0 if bad else 1.0,
            "gen_ai.evaluation.score.label": "bad" if bad else "good",
            "gen_ai.response.id": one.response_id,
            "routeproof.arm": one.common.get("routeproof.arm"),
            "routeproof.route": one.common.get("routeproof.route"),
        }
        rows.append(
            {
                "timeUnixNano": str(one.ended_ns),
                "observedTimeUnixNano": str(one.ended_ns),
                "severityNumber": INFO,
                "eventName": "gen_ai.evaluation.result",
                "traceId": ids[0],
                "spanId": ids[1],
                "attributes": attributes(named(given, convention)),
            }
        )
    return rows


def first_chunk_s(sample: Sample) -> float | None:
    """Wait for the first content of a stream, in seconds; ``None`` for the rest."""
    chunks = sample.record.stream.chunk_s
    if sample.stratum != "stream" or not chunks:
        return None
    return chunks[0] - sample.record.clock.intended_s
