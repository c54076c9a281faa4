"""Gate 3: does the draft earn its keep?"""

from routeproof.gates.correctness import tripped
from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import Row
from routeproof.gates.fold import gate_result
from routeproof.gates.result import Check, GateResult, Status
from routeproof.gates.staying_up import trend_checks

ODD_CLASS = 0.5
"""A class whose extra tokens per pass are below this share of the whole is odd."""

LOAD_DECAY = 0.9
"""Tokens per pass at the top load, as a share of the lowest, below which they decay."""


def judge_acceptance(evidence: Evidence) -> GateResult:
    """Whether acceptance is above its floors, everywhere and all the time.

    Fails below a floor, when a class of requests pays more for the draft than it
    gets, and when acceptance decays with load or uptime. Not measured on a route
    without speculation, when the engine exports nothing, and when the degeneration
    guard tripped (loops are accepted splendidly). Counts that contradict each other
    are inconclusive: nothing can rest on them.
    """
    if evidence.routes is not None and not evidence.routes.is_speculative:
        return _not_measured("the route does not speculate", not_speculative=True)
    void = tripped(evidence)
    if void:
        return _not_measured(f"void, the degeneration guard tripped: {void[0]}")
    if evidence.acceptance.source == "none":
        return _not_measured("the engine does not export its acceptance")
    floors = evidence.agreed.performance.acceptance
    floor_checks = [
        _floor(evidence, "tokens_per_pass", floors.tokens_per_pass_min),
        _floor(evidence, "acceptance_rate", floors.acceptance_rate_min),
    ]
    checks = [
        *_identities(evidence),
        *_natural(evidence),
        *floor_checks,
        *_break_even(evidence),
        *_collapsed(evidence),
        *_load_decay(evidence),
        *trend_checks(evidence, only="acceptance_rate"),
    ]
    below = any(check.status is Status.FAILED for check in floor_checks)
    return gate_result(
        "acceptance",
        checks,
        flags=("below_floor",) if below else (),
        hints=_hints(evidence),
        passed="; ".join(c.reason for c in floor_checks if c.candidate is not None),
    )


def _not_measured(reason: str, *, not_speculative: bool = False) -> GateResult:
    return GateResult(
        gate="acceptance",
        status=Status.NOT_MEASURED,
        reason=reason,
        flags=("not_speculative",) if not_speculative else (),
    )


def _identities(evidence: Evidence) -> list[Check]:
    found = evidence.acceptance.identities
    broken = [name.replace("_", " ") for name, holds in found.items() if not holds]
    if not broken:
        return []
    if "speculates as configured" in broken:
        reason = "the route is configured to speculate and drafted nothing"
        return [Check(name="identities", status=Status.FAILED, reason=reason)]
    reason = f"the engine's counts contradict each other: {', '.join(sorted(broken))}"
    return [
        Check(
            name="identities",
            status=Status.INCONCLUSIVE,
            reason=reason,
            notes=evidence.acceptance.notes,
        )
    ]


def _natural(evidence: Evidence) -> list[Check]:
    """Texts past their natural end and random tokens are no evidence of acceptance."""
    why = evidence.acceptance.refused
    if not why:
        return []
    reason = f"acceptance over these cases says nothing: {'; '.join(why)}"
    return [Check(name="natural_texts", status=Status.INCONCLUSIVE, reason=reason)]


def _floor(evidence: Evidence, name: str, floor: float | None) -> Check:
    overall = evidence.acceptance.overall
    value, words = overall.get(name), name.replace("_", " ")
    low, high = overall.get(f"{name}_low"), overall.get(f"{name}_high")
    if value is None:
        status, reason = Status.NOT_MEASURED, f"{words} is not known"
    elif floor is None:
        status, reason = Status.PASSED, f"{words} {value:.3g}, no floor is agreed"
    elif (high if high is not None else value) < floor:
        status, reason = Status.FAILED, f"{words} {value:.3g} is below {floor:g}"
    elif (low if low is not None else value) >= floor:
        status, reason = (
            Status.PASSED,
            f"{words} {value:.3g}, at least {floor:g} agreed",
        )
    else:
        status = Status.INCONCLUSIVE
        reason = f"{words} {value:.3g}: its interval reaches below {floor:g}"
    return Check(
        name=name,
        status=status,
        reason=reason,
        kind="value",
        candidate=value,
        limit=floor,
        n=_whole(overall.get("requests")),
        required=floor is not None or name == "tokens_per_pass",
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _break_even(evidence: Evidence) -> list[Check]:
    """Tokens per pass against what a pass costs: the speed in two factors."""
    overall = evidence.acceptance.overall
    tokens, overhead = (
        overall.get("tokens_per_pass"),
        overall.get("break_even_tokens_per_pass"),
    )
    if tokens is None or overhead is None or overhead <= 0:
        return []
    return [
        Check(
            name="break_even",
            status=Status.PASSED if tokens >= overhead else Status.INCONCLUSIVE,
            reason=f"a pass yields {tokens:.2f} tokens and costs {overhead:.2f} plain "
            f"ones: {tokens / overhead:.2f} times the decode speed",
            kind="value",
            candidate=tokens,
            limit=overhead,
            required=False,
        )
    ]


def _collapsed(evidence: Evidence) -> list[Check]:
    """Classes in which the draft costs more than it saves.

    A class fails when the upper limit of its tokens per pass is below the cost of a
    pass, while the whole is above it: the gain of the others hides it.
    """
    overall = evidence.acceptance.overall
    tokens, overhead = (
        overall.get("tokens_per_pass"),
        overall.get("break_even_tokens_per_pass"),
    )
    if tokens is None or overhead is None or tokens < overhead:
        return []
    checks = []
    for row in evidence.acceptance.tables.get("by_class", ()):
        value, high = _cell(row, "tokens_per_pass"), _cell(row, "tokens_per_pass_high")
        if value is None or high is None or high >= overhead / 1.05:
            continue
        checks.append(
            Check(
                name=f"collapse[class={row['class']}]",
                status=Status.FAILED,
                reason=f"class {row['class']} yields {value:.2f} tokens per pass, less "
                f"than the {overhead:.2f} a pass costs",
                kind="value",
                candidate=value,
                limit=overhead,
                n=_whole(_cell(row, "requests")),
                required=False,
                slice={"class": str(row["class"])},
            )
        )
    return checks


def _load_decay(evidence: Evidence) -> list[Check]:
    rows = [
        row
        for row in evidence.acceptance.tables.get("by_load", ())
        if str(row["load"]).startswith("sweep")
    ]
    if len(rows) < 2:
        return []
    first, last = rows[0], rows[-1]
    before, after = _cell(first, "tokens_per_pass"), _cell(last, "tokens_per_pass")
    low, high = _cell(first, "tokens_per_pass_low"), _cell(last, "tokens_per_pass_high")
    if before is None or after is None:
        return []
    sure = low is not None and high is not None and high < low
    decays = sure and after < LOAD_DECAY * before
    return [
        Check(
            name="holds_under_load",
            status=Status.FAILED if decays else Status.PASSED,
            reason=f"{before:.2f} tokens per pass at {first['load']}, {after:.2f} at "
            f"{last['load']}",
            kind="ratio",
            baseline=before,
            candidate=after,
            estimate=after / before,
            limit=LOAD_DECAY,
            required=False,
        )
    ]


def _cell(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else None


def _hints(evidence: Evidence) -> list[str]:
    """Where to look first: seldom at a bigger draft."""
    acceptance = evidence.acceptance
    whole = acceptance.overall.get("tokens_per_pass")
    hints = []
    if whole is not None:
        odd = [
            str(row["class"])
            for row in acceptance.tables.get("by_class", ())
            if (value := _cell(row, "tokens_per_pass_high")) is not None
            and value - 1 < ODD_CLASS * (whole - 1)
        ]
        if odd:
            hints.append(
                f"acceptance is odd in {', '.join(odd)}: look first at the tokenizer "
                "alignment of draft and target and at the draft length, not at a "
                "bigger draft"
            )
    if acceptance.looks_forced:
        hints.append(
            "acceptance does not depend on the text: look for a setting that forces or "
            "simulates it"
        )
    repeats = [
        _cell(row, "tokens_per_pass")
        for row in acceptance.tables.get("by_repetition", ())
    ]
    first, again = (repeats[0], repeats[-1]) if len(repeats) > 1 else (None, None)
    if first is not None and again is not None and again > 1.2 * first:
        hints.append(
            f"prompts sent before yield {again:.2f} tokens per pass, new ones "
            f"{first:.2f}: the draft learns from repeats, production has fewer"
        )
    return hints
