"""What was agreed before a run: tolerances, limits, and by whom."""

from collections.abc import Iterator

from routeproof.gates.evidence import Agreed
from routeproof.proof.policy import QualityGateSpec
from routeproof.reports import figures
from routeproof.reports.judgement import Judgement
from routeproof.reports.tables import Table

NOBODY = "nobody named in the proof file (`policy.agreed_by`)"


def agreed_rows(agreed: Agreed) -> Iterator[tuple[str, str, str]]:
    """Every limit as (what, where, limit)."""
    yield from map(_quality, agreed.quality)
    for name, count in agreed.classes_required.items():
        yield "cases", f"class {name}", f"at least {count:,}"
    for metric, limits in agreed.performance.slo.items():
        unit = "s" if metric.endswith("_s") else ""
        for percentile, limit in limits.items():
            yield metric.removesuffix("_s"), percentile, figures.number(limit, unit)
    gain = agreed.performance.gain
    yield gain.metric, "gain", f"at least {gain.at_least:g} times the baseline"
    floors = agreed.performance.acceptance
    for name, floor in (
        ("tokens_per_pass", floors.tokens_per_pass_min),
        ("acceptance_rate", floors.acceptance_rate_min),
    ):
        if floor is not None:
            yield name, "", f"at least {floor:g}"
    yield from _memory(agreed)


def _quality(spec: QualityGateSpec) -> tuple[str, str, str]:
    where = ", ".join(f"{key} {value}" for key, value in spec.slice.items())
    limit = f"at most {100 * spec.tolerance:.1f} points worse"
    return spec.metric, where or "all cases", limit


def _memory(agreed: Agreed) -> Iterator[tuple[str, str, str]]:
    memory = agreed.memory
    if memory.peak_bytes_ratio_max is not None:
        most = f"at most {memory.peak_bytes_ratio_max:g} times the baseline"
        yield "peak memory", "", most
    if memory.kv_capacity_ratio_min is not None:
        least = f"at least {memory.kv_capacity_ratio_min:g} times the baseline"
        yield "KV capacity", "", least
    if memory.leak_bytes_per_hour_max is not None:
        most = figures.size_in_bytes(memory.leak_bytes_per_hour_max)
        yield "leak", "soak", f"at most {most} an hour"


def agreed_table(judgement: Judgement) -> Table:
    """The limits, the error rate and who agreed them, for the page."""
    agreed = judgement.evidence.agreed
    policy = agreed.policy
    rows = [
        *(
            (what.replace("_", " "), where, limit)
            for what, where, limit in agreed_rows(agreed)
        ),
        ("one-sided alpha", "", f"{policy.alpha:g}"),
        ("agreed by", "", policy.agreed_by or "nobody named"),
    ]
    head = ("what", "where", "limit")
    return Table(head=head, rows=tuple(rows), numeric=(False,) * 3)
