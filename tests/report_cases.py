"""A judgement with something in every part, for the tests of reports."""

import math

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
    EqualityRow,
    Flip,
    LatencyRow,
    LengthRow,
    LoadRow,
    MemoryRow,
    Percentile,
    QualityRow,
    RatioRow,
    TimeBin,
    TrendRow,
    ValidityRow,
)
from routeproof.gates.result import Check, GateResult, Status
from routeproof.proof.policy import (
    GainSpec,
    MemorySpec,
    PerformanceSpec,
    PolicySpec,
    QualityGateSpec,
    RollbackSpec,
)
from routeproof.reports.judgement import (
    Atrt,
    Evidenced,
    Judgement,
    Provenance,
    WorstSlice,
)
from routeproof.routes.inventory import Change, Field, Inventory, RouteDiff
from routeproof.stats.interval import Interval, NonInferiority
from routeproof.verdict import Decision, Verdict

HOSTILE = "</script><script>window.hostile = 1</script><img src=x onerror=alert(1)>"

QUESTIONS = (
    ("exact_match", {}, "declared", 312, 0.742, 0.736, -0.006, 0.011, 0.02, "passed"),
    (
        "exact_match",
        {"class": "factual_qa"},
        "required_class",
        96,
        0.71,
        0.70,
        -0.01,
        0.03,
        0.02,
        "inconclusive",
    ),
    (
        "schema_valid",
        {"class": "structured"},
        "declared",
        120,
        1.0,
        0.967,
        -0.033,
        0.028,
        0.01,
        "failed",
    ),
    ("tool_call", {}, "declared", 110, 0.91, 0.918, 0.008, 0.02, 0.03, "passed"),
    (
        "exact_match",
        {"prompt_length": "over 4k"},
        "screening",
        38,
        0.68,
        0.40,
        -0.28,
        0.15,
        0.02,
        "failed",
    ),
)


def an_interval(estimate: float, half: float, method: str = "tango") -> Interval:
    return Interval(low=estimate - half, high=estimate + half, level=0.9, method=method)


def question_name(metric: str, where: dict[str, str]) -> str:
    inside = ",".join(f"{key}={value}" for key, value in where.items())
    return f"{metric}[{inside}]" if inside else metric


def quality_rows() -> tuple[QualityRow, ...]:
    rows = []
    for metric, where, origin, n, base, cand, diff, half, tolerance, _ in QUESTIONS:
        answer = NonInferiority(
            decision="certified",
            estimate=diff,
            interval=an_interval(diff, half),
            tolerance=tolerance,
            p_value=0.01,
            harm_p_value=0.4,
            n=n,
            n_needed=None,
            method="tango",
        )
        rows.append(
            QualityRow(
                question=question_name(metric, where),
                metric=metric,
                slice=where,
                origin=origin,
                is_required=origin != "screening",
                units=n,
                means=Arms(baseline=base, candidate=cand, control=base),
                losses=max(0, round(-diff * n)) + 2,
                gains=2,
                control_losses=1,
                control_gains=1,
                answer=answer,
            )
        )
    return tuple(rows)


def quality_checks() -> tuple[Check, ...]:
    return tuple(
        Check(
            name=question_name(metric, where),
            status=Status(status),
            reason=f"{metric} changed by {100 * diff:+.1f} points on {n} pairs",
            kind="difference",
            unit="share",
            baseline=base,
            candidate=cand,
            estimate=diff,
            interval=an_interval(diff, half),
            limit=tolerance,
            n=n,
            n_needed=190 if status == "inconclusive" else None,
            required=origin != "screening",
            slice=where,
        )
        for (metric, where, origin, n, base, cand, diff, half, tolerance, status) in (
            QUESTIONS
        )
    )


def flips(count: int = 6) -> tuple[Flip, ...]:
    made = [
        Flip(
            question="schema_valid[class=structured]",
            case_id="structured-017",
            trial=0,
            class_="structured",
            direction="loss",
            baseline_score=1.0,
            candidate_score=0.0,
            baseline_text='{"city": "Lyon", "population": 522250}',
            candidate_text='{"city": "Lyon", "population": five hundred',
            prompt="Give the city and its population as JSON.",
            reference='{"city": "Lyon", "population": 522250}',
            first_divergence=32,
        ),
        Flip(
            question="exact_match",
            case_id="hostile-001",
            trial=0,
            class_="factual_qa",
            direction="loss",
            baseline_score=1.0,
            candidate_score=0.0,
            baseline_text="Paris",
            candidate_text=HOSTILE,
            candidate_outcome="truncated",
            prompt=f"What is the capital of France? {HOSTILE}",
            reference="Paris",
            first_divergence=0,
        ),
    ]
    for index in range(max(0, count - len(made))):
        gain = index % 3 == 0
        made.append(
            Flip(
                question="exact_match",
                case_id=f"arithmetic-{index:03d}",
                trial=0,
                class_="arithmetic",
                direction="gain" if gain else "loss",
                baseline_score=0.0 if gain else 1.0,
                candidate_score=1.0 if gain else 0.0,
                baseline_text=f"The sum is {40 + index}. I added the tens first.",
                candidate_text=f"The sum is {50 + index}. I added the tens first.",
                prompt=f"What is {20 + index} + 20?",
                reference=str(40 + index),
                first_divergence=11,
            )
        )
    return tuple(made[:count])


def _ecdf(median: float, spread: float) -> tuple[tuple[float, float], ...]:
    points = []
    for index in range(1, 101):
        share = index / 100
        logit = math.log((share - 0.002) / (1.002 - share))
        points.append((median * math.exp(spread * logit), share))
    return tuple(points)


def latency_rows() -> tuple[LatencyRow, ...]:
    rows = []
    for metric, median, spread in (
        ("time_to_first_token", 0.18, 0.2),
        ("time_per_output_token", 0.021, 0.12),
        ("request_latency", 1.9, 0.25),
        ("queue_time", 0.004, 0.4),
        ("prefill_time", 0.15, 0.2),
        ("decode_time", 1.7, 0.25),
    ):
        for arm, factor in (("baseline", 1.0), ("candidate", 0.74), ("control", 1.01)):
            ecdf = _ecdf(median * factor, spread)
            rows.append(
                LatencyRow(
                    arm=arm,
                    phase="latency",
                    level="c1",
                    metric=metric,
                    unit="s",
                    n=312,
                    failed=3 if arm == "candidate" else 0,
                    unknown=0,
                    mean=median * factor * 1.05,
                    percentiles=tuple(
                        Percentile(
                            q=q,
                            value=ecdf[round(100 * q) - 1][0] if q < 0.99 else None,
                            low=ecdf[round(100 * q) - 1][0] * 0.96
                            if q < 0.99
                            else None,
                            high=ecdf[round(100 * q) - 1][0] * 1.05
                            if q < 0.99
                            else None,
                            n_needed=473 if q == 0.99 else None,
                        )
                        for q in (0.5, 0.9, 0.95, 0.99)
                    ),
                    ecdf=ecdf,
                )
            )
    for concurrency in (1, 4, 16, 64):
        for arm, factor in (("baseline", 1.0), ("candidate", 0.74)):
            p95 = 2.6 * factor * (1 + concurrency / 24)
            rows.append(
                LatencyRow(
                    arm=arm,
                    phase="sweep",
                    level=f"c{concurrency}",
                    metric="request_latency",
                    unit="s",
                    n=20 * concurrency,
                    failed=0,
                    unknown=0,
                    mean=p95 * 0.7,
                    percentiles=(Percentile(q=0.95, value=p95),),
                )
            )
    return tuple(rows)


def load_rows() -> tuple[LoadRow, ...]:
    rows = []
    for concurrency in (1, 4, 16, 64):
        for arm, speed in (("baseline", 45.0), ("candidate", 62.0)):
            tokens = speed * concurrency / (1 + concurrency / 24)
            rows.append(
                LoadRow(
                    arm=arm,
                    phase="sweep",
                    level=f"c{concurrency}",
                    asked=float(concurrency),
                    requests=20 * concurrency,
                    failed=2 if concurrency == 64 else 0,
                    achieved_concurrency=concurrency * 0.97,
                    window_s=(2.0, 58.0),
                    requests_per_s=tokens / 80,
                    output_tokens_per_s=tokens,
                    goodput_per_s=tokens / 80 * (0.99 if concurrency < 64 else 0.6),
                    correct_goodput_per_s=tokens / 80 * 0.7,
                    slo_share=0.99 if concurrency < 64 else 0.6,
                )
            )
    return tuple(rows)


def ratio_rows() -> tuple[RatioRow, ...]:
    return tuple(
        RatioRow(
            metric=metric,
            of=of,
            phase="latency",
            level="c1",
            better=better,
            pairs=312,
            blocks=39,
            values=Arms(baseline=base, candidate=base * ratio),
            ratio=ratio,
            interval=an_interval(ratio, 0.03, "block_bootstrap"),
            gain=1 / ratio if better == "lower" else ratio,
            gain_interval=an_interval(
                1 / ratio if better == "lower" else ratio, 0.04, "block_bootstrap"
            ),
            control_ratio=1.004,
            control_interval=an_interval(1.004, 0.02, "block_bootstrap"),
        )
        for metric, of, better, base, ratio in (
            ("output_token_throughput", "mean", "higher", 45.0, 1.36),
            ("time_to_first_token", "p95", "lower", 0.31, 0.97),
            ("request_latency", "mean", "lower", 1.9, 0.74),
        )
    )


def length_rows() -> tuple[LengthRow, ...]:
    edges = tuple(float(edge) for edge in range(0, 520, 40))
    shapes = {
        "baseline": (3, 18, 42, 60, 55, 44, 34, 22, 14, 10, 6, 4),
        "candidate": (4, 20, 45, 62, 54, 41, 33, 20, 13, 10, 6, 4),
    }
    return tuple(
        LengthRow(
            arm=arm,
            what=what,
            n=sum(counts),
            mean=190.0,
            edges=edges,
            counts=counts if what == "output_tokens" else shapes["baseline"],
        )
        for what in ("prompt_tokens", "output_tokens")
        for arm, counts in shapes.items()
    )


def acceptance() -> Acceptance:
    return Acceptance(
        overall={
            "tokens_per_pass": 2.84,
            "acceptance_rate": 0.61,
            "accepted_length": 1.84,
        },
        tables={
            "by_position": tuple(
                {
                    "position": index + 1,
                    "marginal": 0.82 * 0.8**index,
                    "conditional": 0.82 - 0.02 * index,
                }
                for index in range(5)
            ),
            "by_class": tuple(
                {
                    "class": name,
                    "acceptance_rate": rate,
                    "tokens_per_pass": 1 + 3 * rate,
                    "requests": n,
                }
                for name, rate, n in (
                    ("copy_edit", 0.88, 40),
                    ("structured", 0.66, 120),
                    ("factual_qa", 0.52, 96),
                    ("long_form", 0.43, 56),
                )
            ),
        },
        identities={"accepted_not_over_drafted": True, "histogram_sums": True},
        source="requests",
    )


def stability() -> Stability:
    return Stability(
        memory=(
            MemoryRow(
                name="process_rss_bytes",
                unit="bytes",
                peak=Arms(baseline=1.82e9, candidate=2.31e9),
                after_drain=Arms(baseline=1.80e9, candidate=2.30e9),
                per_hour=Arms(baseline=1.0e6, candidate=4.2e6),
                per_hour_low=Arms(baseline=-2.0e6, candidate=-1.1e6),
                samples=Arms(baseline=600.0, candidate=610.0),
                source="psutil",
            ),
            MemoryRow(
                name="kv_used_share",
                unit="share",
                peak=Arms(baseline=0.41, candidate=0.38),
                after_drain=Arms(baseline=0.0, candidate=0.0),
                source="metrics",
            ),
        ),
        trends=(
            TrendRow(
                metric="request_latency",
                arm="candidate",
                first=1.4,
                last=1.42,
                change_share=0.014,
                p_value=0.6,
                n=200,
            ),
        ),
        events=({"arm": "candidate", "name": "timeouts", "count": 3},),
        timeline=tuple(
            TimeBin(
                start_s=10.0 * index,
                end_s=10.0 * index + 10,
                arm="baseline" if (index // 2) % 2 == 0 else "candidate",
                phase="quality" if index < 24 else "sweep",
                outcomes={"completed": 12, "truncated": 1}
                if index % 9
                else {"completed": 11, "timeout": 2},
                median_latency_s=1.9 if (index // 2) % 2 == 0 else 1.4,
            )
            for index in range(40)
        ),
        soak_s=600.0,
        has_telemetry=True,
    )


def routes() -> RouteDiff:
    def inventory(kv: str, speculation: str, digest: str) -> Inventory:
        return Inventory(
            fields=(
                Field(
                    name="model",
                    value="example/model-8b",
                    known="read_back",
                    declared="example/model-8b",
                    read_back="example/model-8b",
                ),
                Field(name="revision", value="5b2c91d0", known="declared"),
                Field(name="engine.version", value="0.32.0", known="read_back"),
                Field(name="kv_cache", value=kv, known="read_back"),
                Field(name="speculation", value=speculation, known="declared"),
                Field(name="hardware.driver", value=None, known="unverified"),
            ),
            digest=digest,
            endpoint="http://127.0.0.1:8000/v1",
        )

    return RouteDiff(
        baseline=inventory("bf16", "none", "a" * 64),
        candidate=inventory("fp8_e4m3", "eagle3, 5 tokens", "b" * 64),
        changes=(
            Change(
                field="kv_cache",
                baseline="bf16",
                candidate="fp8_e4m3",
                change_class="lossy",
                intended=True,
                why="a narrower cache rounds keys and values",
            ),
            Change(
                field="speculation",
                baseline=None,
                candidate="eagle3, 5 tokens",
                change_class="lossless",
                intended=True,
                why="drafts are verified by the target",
            ),
        ),
        change_class="lossy",
        is_speculative=True,
        workload_fingerprint="c" * 64,
    )


def evidence(flip_count: int = 6) -> Evidence:
    shown = flips(flip_count)
    return Evidence(
        agreed=Agreed(
            quality=(
                QualityGateSpec(metric="exact_match", tolerance=0.02),
                QualityGateSpec(
                    metric="schema_valid", tolerance=0.01, slice={"class": "structured"}
                ),
            ),
            classes_required={"factual_qa": 96},
            performance=PerformanceSpec(
                slo={"time_to_first_token_s": {"p95": 0.5}},
                gain=GainSpec(at_least=1.2),
            ),
            memory=MemorySpec(peak_bytes_ratio_max=1.05),
            policy=PolicySpec(agreed_by="serving team"),
            rollback=RollbackSpec(to="baseline", drilled="2026-11-28, 1.4 s"),
        ),
        routes=routes(),
        workload_matches=True,
        is_interleaved=True,
        has_control=True,
        validity=(
            ValidityRow(
                name="schedule_lag_p99",
                value=0.0004,
                limit=0.005,
                unit="s",
                is_ok=True,
                reason="requests left 0.4 ms late at worst of 99 in 100",
            ),
            ValidityRow(
                name="client_cpu_share",
                value=None,
                limit=0.8,
                unit="share",
                is_ok=None,
                reason="not sampled",
            ),
        ),
        quality=Quality(
            rows=quality_rows(),
            flips=shown,
            flips_total=len(shown) + 3,
            equality=(
                EqualityRow(
                    pair="candidate",
                    pairs=312,
                    equal=280,
                    near_ties=20,
                    real=4,
                    cannot_tell=8,
                    divergence_share=(0.1, 0.4, 0.8),
                ),
                EqualityRow(pair="control", pairs=312, equal=310, near_ties=2, real=0),
            ),
            lengths=length_rows(),
            outcomes=(
                {
                    "arm": "baseline",
                    "phase": "quality",
                    "outcome": "completed",
                    "count": 312,
                },
                {
                    "arm": "candidate",
                    "phase": "quality",
                    "outcome": "completed",
                    "count": 309,
                },
                {
                    "arm": "candidate",
                    "phase": "quality",
                    "outcome": "timeout",
                    "count": 3,
                },
            ),
            guard=(
                {
                    "check": "repeated_ngrams",
                    "baseline": 0.01,
                    "candidate": 0.012,
                    "p_value": 0.5,
                    "tripped": False,
                    "reason": "loops in 1.2 % of answers, 1.0 % on the baseline",
                },
            ),
        ),
        speed=Speed(
            latencies=latency_rows(),
            ratios=ratio_rows(),
            loads=load_rows(),
            prefill_share=0.09,
            median_output_tokens=180.0,
        ),
        acceptance=acceptance(),
        stability=stability(),
        maturity="release",
    )


def gates() -> tuple[GateResult, ...]:
    return (
        GateResult(
            gate="inventory",
            status=Status.PASSED,
            reason="every field declared or read back",
        ),
        GateResult(
            gate="parity", status=Status.PASSED, reason="only what was declared differs"
        ),
        GateResult(
            gate="acceptance",
            status=Status.PASSED,
            reason="2.84 tokens per pass, floor 1.8",
        ),
        GateResult(
            gate="latency",
            status=Status.PASSED,
            reason="1.36x output tokens/s, 1.2x asked",
            checks=(
                Check(
                    name="gain output_token_throughput",
                    status=Status.PASSED,
                    reason="1.36 times the baseline, 1.20 asked",
                    kind="ratio",
                    baseline=45.0,
                    candidate=61.2,
                    estimate=1.36,
                    interval=an_interval(1.36, 0.04, "block_bootstrap"),
                    limit=1.2,
                    n=312,
                ),
                Check(
                    name="slo time_to_first_token p95",
                    status=Status.PASSED,
                    reason="p95 0.30 s, 0.50 s allowed",
                    kind="value",
                    unit="s",
                    candidate=0.3,
                    estimate=0.3,
                    interval=an_interval(0.3, 0.02, "order_statistic"),
                    limit=0.5,
                    n=312,
                ),
            ),
        ),
        GateResult(
            gate="correctness",
            status=Status.FAILED,
            reason="schema_valid[class=structured] lost 3.3 points, 1.0 allowed",
            checks=quality_checks(),
            hints=("look at the tokenizer alignment of the draft first",),
        ),
        GateResult(
            gate="memory_stability",
            status=Status.INCONCLUSIVE,
            reason="the soak is too short to show a leak",
        ),
        GateResult(gate="rollback", status=Status.NOT_MEASURED, reason="never drilled"),
    )


def a_judgement(
    *, flip_count: int = 6, decision: Decision = Decision.AVOID
) -> Judgement:
    reasons = ("schema_valid[class=structured] lost 3.3 points, 1.0 allowed",)
    return Judgement(
        headline=f"{decision.upper()}: {reasons[0]}",
        verdict=Verdict(
            decision=decision,
            reasons=(*reasons, "the way back was never drilled"),
            stop_use=("correctness_drift",),
            would_change=("no new schema failures on 120 structured cases",),
            retest=("after the next engine release",),
        ),
        gates=gates(),
        evidence=evidence(flip_count),
        provenance=Provenance(
            run_id="20261130-210000-demo",
            started_at="2026-11-30T21:00:00Z",
            routeproof_version="0.1.0",
            workload_fingerprint="c" * 64,
            baseline_digest="a" * 64,
            candidate_digest="b" * 64,
            seed=20261130,
            cases=312,
            requests=936,
            duration_s=400.0,
            scorers={"exact_match": 1, "schema_valid": 1},
            digests={"records": "d" * 64, "scores": "e" * 64},
            environment={"python": "3.11.9", "cpus": "2"},
        ),
        worst=WorstSlice(
            question="exact_match[prompt_length=over 4k]",
            reason="11 of 38 broken",
            examples=evidence(2).quality.flips,
        ),
        more_evidence=(
            Evidenced(
                question="exact_match[class=factual_qa]",
                have=96,
                need=190,
                reason="the interval still reaches beyond the tolerance",
            ),
        ),
        atrt=Atrt(
            framework={"name": "vllm", "version": "0.32.0"},
            route={"model": "example/model-8b"},
            baseline={"model": "example/model-8b"},
            acceptance={"tokens_per_pass": 2.84},
            latency={"time_to_first_token_p95_s": 0.3},
            memory={"peak_bytes_ratio": 1.27},
            decision=decision.value,
            stop_use=("correctness_drift",),
        ),
        tables={
            "tune": tuple(
                {
                    "draft_tokens": k,
                    "concurrency": c,
                    "gain": 1.0 + 0.1 * k - 0.02 * k * k - 0.002 * c * k,
                    "acceptance_rate": 0.8 - 0.05 * k,
                    "tokens_per_pass": 1 + 0.5 * k,
                    "chosen": k == 3 and c == 1,
                }
                for k in range(1, 7)
                for c in (1, 4, 16)
            )
        },
    )
