"""Evidence with good defaults: everything measured, everything fine."""

from builders import a_route_diff, with_

from routeproof.gates.evidence import (
    Acceptance,
    Agreed,
    Evidence,
    Quality,
    Speed,
    Stability,
)
from routeproof.gates.facts import (
    Arms,
    LatencyRow,
    LoadRow,
    MemoryRow,
    Percentile,
    QualityRow,
    RatioRow,
    ValidityRow,
)
from routeproof.proof.policy import (
    GainSpec,
    PerformanceSpec,
    QualityGateSpec,
    RollbackSpec,
)
from routeproof.stats.interval import Interval, NonInferiority


def an_interval(low, high):
    return Interval(low=low, high=high, level=0.9, method="test")


def an_answer(decision="certified", **changes):
    given = {
        "decision": decision,
        "estimate": 0.0 if decision == "certified" else -0.04,
        "interval": an_interval(-0.02, 0.02),
        "tolerance": 0.03,
        "p_value": 0.01 if decision == "certified" else 0.4,
        "harm_p_value": 1.0 if decision != "harmed" else 0.001,
        "n": 200,
        "n_needed": None,
        "n_minimum": 99,
        "method": "exact_tango",
        **changes,
    }
    return NonInferiority(**given)


def a_quality_row(question="contains", decision="certified", answer=None, **changes):
    found = answer or an_answer(decision)
    given = {
        "question": question,
        "metric": "contains",
        "origin": "declared",
        "units": found.n,
        "missing": found.missing,
        "answer": found,
        **changes,
    }
    return QualityRow(**given)


def a_ratio(metric="request_latency", gain=1.4, low=None, high=None, **changes):
    """A paired ratio given by its gain (above 1 is better) and the limits of it."""
    low = gain * 0.97 if low is None else low
    high = gain * 1.03 if high is None else high
    better = "higher" if metric == "output_token_throughput" else "lower"
    turned = better == "lower"
    given = {
        "metric": metric,
        "of": "mean",
        "phase": "latency",
        "level": "c1",
        "better": better,
        "pairs": 160,
        "blocks": 20,
        "values": Arms(baseline=1.0, candidate=1 / gain),
        "ratio": 1 / gain if turned else gain,
        "interval": an_interval(1 / high, 1 / low)
        if turned
        else an_interval(low, high),
        "gain": gain,
        "gain_interval": an_interval(low, high),
        **changes,
    }
    return RatioRow(**given)


def a_latency_row(metric="time_to_first_token", p95=0.2, **changes):
    given = {
        "arm": "candidate",
        "phase": "latency",
        "level": "c1",
        "metric": metric,
        "unit": "s",
        "n": 200,
        "failed": 0,
        "unknown": 0,
        "mean": 0.1,
        "percentiles": (
            Percentile(q=0.95, value=p95, low=p95 * 0.9, high=p95 * 1.1, n_needed=59),
        ),
        **changes,
    }
    return LatencyRow(**given)


def a_load(arm="candidate", phase="latency", level="c1", asked=1.0, **changes):
    return LoadRow(arm=arm, phase=phase, level=level, asked=asked, **changes)


def speed(*ratios, **changes):
    given = {
        "latencies": (a_latency_row(), a_latency_row(arm="baseline")),
        "loads": (a_load("baseline"), a_load()),
        "ratios": ratios or (a_ratio("output_token_throughput"), a_ratio()),
        "prefill_share": 0.2,
        "median_output_tokens": 60.0,
        "cached_share": {"baseline": 0.0, "candidate": 0.0},
        **changes,
    }
    return Speed(**given)


def agreed(**changes):
    given = {
        "quality": (QualityGateSpec(metric="contains", tolerance=0.03),),
        "performance": PerformanceSpec(gain=GainSpec(at_least=1.2)),
        "rollback": RollbackSpec(drilled="2026-11-29 in 3.1 s"),
        **changes,
    }
    return Agreed(**given)


def evidence(**changes):
    """A candidate that deserves adoption."""
    given = {
        "agreed": agreed(),
        "routes": a_route_diff(),
        "workload_matches": True,
        "is_interleaved": True,
        "has_control": True,
        "validity": (
            ValidityRow(
                name="loop_lag",
                value=0.001,
                limit=0.01,
                unit="s",
                is_ok=True,
                reason="loop lag is 0.001",
            ),
        ),
        "quality": Quality(rows=(a_quality_row(),)),
        "speed": speed(),
        "acceptance": Acceptance(),
        "stability": Stability(
            memory=(
                MemoryRow(
                    name="device_memory_bytes",
                    unit="bytes",
                    peak=Arms(baseline=1e9, candidate=1.02e9),
                ),
            ),
            has_telemetry=True,
        ),
        "launch_declared": True,
        "maturity": "release",
        **changes,
    }
    return Evidence(**given)


def changed(found, part, **changes):
    """Evidence with some fields of one part changed."""
    return with_(found, **{part: with_(getattr(found, part), **changes)})


def check_of(result, start):
    """The first check whose name begins with ``start``."""
    return next(check for check in result.checks if check.name.startswith(start))
