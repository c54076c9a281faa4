"""What a live engine does, from the growth of its counters over a short window.

Everything here is somebody else's traffic: nothing is known of single requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from routeproof.engines.histograms import Histogram
from routeproof.engines.windows import Window
from routeproof.metrics.acceptance import AcceptanceCounts, Trust, derive, worse_of
from routeproof.metrics.acceptance_windows import OwnTraffic, counts_of_window

Numbers = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class LiveNumber:
    """One number of a window.

    Attributes:
        words: What a person calls it.
        unit: ``1`` for shares and ratios.
        is_watched: Whether a shift of it is an alarm; the others are traffic, and
            explain one.
        least_change: Relative shift that is worth an alarm.
    """

    words: str
    unit: str
    is_watched: bool = False
    least_change: float = 0.1


LIVE: dict[str, LiveNumber] = {
    "rejection_rate": LiveNumber("rejection rate", "1", True),
    "tokens_per_pass": LiveNumber("tokens per pass", "1", True, 0.05),
    "acceptance_length": LiveNumber("acceptance length", "1", True, 0.05),
    "coverage": LiveNumber("passes with a draft", "1", True),
    "verify_passes_per_request": LiveNumber("verify passes per request", "1", True),
    "request_latency_mean_s": LiveNumber("request latency, mean", "s", True, 0.2),
    "request_latency_p50_s": LiveNumber("request latency, p50", "s"),
    "request_latency_p95_s": LiveNumber("request latency, p95", "s"),
    "request_latency_p99_s": LiveNumber("request latency, p99", "s"),
    "time_to_first_token_p95_s": LiveNumber("time to first token, p95", "s"),
    "error_share": LiveNumber("requests that failed", "1", True, 0.5),
    "structured_failure_share": LiveNumber("structured failures", "1", True, 0.5),
    "requests_per_s": LiveNumber("requests a second", "1/s"),
    "output_tokens_per_s": LiveNumber("output tokens a second", "1/s"),
    "prompt_tokens_per_request": LiveNumber("prompt tokens per request", "tokens"),
    "output_tokens_per_request": LiveNumber("output tokens per request", "tokens"),
    "prompt_share": LiveNumber("prompt share of all tokens", "1"),
    "cached_share": LiveNumber("prompt tokens from cache", "1"),
    "running": LiveNumber("running", "requests"),
    "waiting": LiveNumber("waiting", "requests"),
    "kv_used_share": LiveNumber("KV cache in use", "1"),
    "preemptions": LiveNumber("preemptions", "1"),
}
"""The numbers of a window, in the order in which they are shown."""

GAUGES = ("running", "waiting", "kv_used_share")


@dataclass(frozen=True, slots=True)
class Live:
    """The numbers of one window.

    Attributes:
        numbers: Every name of `LIVE`; ``None`` is unknown, never 0.
        trust: Of the numbers about speculation.
        reasons: What speaks against them, in words.
        spec_passes: Verify passes they rest on; ``None`` when unknown.
    """

    numbers: Numbers
    trust: Trust
    reasons: tuple[str, ...]
    spec_passes: int | None


NO_REQUESTS = "the engine does not count requests: first tokens count as decoded"


def live_numbers(
    grown: Window,
    now: Mapping[str, float],
    latencies: Mapping[str, Histogram],
) -> Live:
    """Numbers of a window.

    Args:
        grown: Growth of the counters, restarts left out.
        now: Gauges at its end.
        latencies: Growth of the engine's histograms, by normalised name.
    """
    counts = _counts(grown)
    derived = derive(counts)
    found: Numbers = dict.fromkeys(LIVE)
    for name in ("rejection_rate", "tokens_per_pass", "acceptance_length", "coverage"):
        found[name] = getattr(derived, name)
    found |= _latencies(latencies)
    found |= _traffic(grown, counts)
    found |= {name: now.get(name) for name in GAUGES}
    return Live(found, counts.trust, counts.reasons, counts.spec_passes)


def _counts(grown: Window) -> AcceptanceCounts:
    requests = grown.deltas.get("requests_total")
    own = OwnTraffic(requests=round(requests or 0))
    made = counts_of_window(
        grown.deltas, own, AcceptanceCounts(), reasons=grown.reasons
    )
    if requests is None and made.trust != "unavailable":
        return msgspec.structs.replace(
            made,
            trust=worse_of(made.trust, "approximate"),
            reasons=(*made.reasons, NO_REQUESTS),
        )
    return made


def _latencies(found: Mapping[str, Histogram]) -> Numbers:
    whole, first = found.get("request_latency"), found.get("time_to_first_token")
    out: Numbers = {}
    if whole is not None:
        out["request_latency_mean_s"] = whole.mean_s()
        for q in (50, 95, 99):
            out[f"request_latency_p{q}_s"] = whole.quantile_s(q / 100)
    if first is not None:
        out["time_to_first_token_p95_s"] = first.quantile_s(0.95)
    return out


def _traffic(grown: Window, counts: AcceptanceCounts) -> Numbers:
    of, length_s = grown.deltas.get, grown.end_s - grown.start_s
    requests, failed = of("requests_total"), of("errors_total")
    prompt, output = of("prompt_tokens_total"), of("output_tokens_total")
    both = None if prompt is None or output is None else prompt + output
    grammar = [
        value
        for name in ("grammar_aborted_total", "grammar_timeout_total")
        if (value := of(name)) is not None
    ]
    # A share of all requests would follow the traffic, not the grammar.
    asked = of("structured_requests_total")
    failures = sum(grammar) if grammar else None
    structured = requests if asked is None else max(asked, failures or 0.0)
    return {
        "verify_passes_per_request": _ratio(counts.spec_passes, requests),
        "error_share": _ratio(failed, requests),
        "structured_failure_share": _ratio(failures, structured),
        "requests_per_s": _ratio(requests, length_s),
        "output_tokens_per_s": _ratio(output, length_s),
        "prompt_tokens_per_request": _ratio(prompt, requests),
        "output_tokens_per_request": _ratio(output, requests),
        "prompt_share": _ratio(prompt, both),
        "cached_share": _ratio(of("cached_tokens_total"), prompt),
        "preemptions": of("preemptions_total"),
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below or below <= 0 else above / below
