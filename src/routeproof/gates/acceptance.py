"""Gate 3: does the draft earn its keep?"""

import re
from collections.abc import Mapping

from routeproof.gates.correctness import tripped
from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import Row
from routeproof.gates.fold import gate_result
from routeproof.gates.measure_acceptance import NO_DRIFT
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
        why = "".join(f": {note}" for note in evidence.acceptance.notes[:1])
        return _not_measured(f"the engine does not export its acceptance{why}")
    floors = evidence.agreed.performance.acceptance
    floor_checks = [
        _floor(evidence, "tokens_per_pass", floors.tokens_per_pass_min),
        _floor(evidence, "acceptance_rate", floors.acceptance_rate_min),
    ]
    checks = [
        *_identities(evidence),
        *_natural(evidence),
        *floor_checks,
        *_factors(evidence),
        *_drift(evidence),
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


def _factors(evidence: Evidence) -> list[Check]:
    """The speed in two factors, and what they come to: each with its interval."""
    overall = evidence.acceptance.overall
    tokens, ratio = overall.get("tokens_per_pass"), overall.get("step_ratio")
    if tokens is None or ratio is None or ratio <= 0:
        return []
    low = overall.get("tokens_per_pass_low")
    high = overall.get("step_ratio_high")
    speed, speed_low = overall.get("decode_speed"), overall.get("decode_speed_low")
    shown = _between(overall, "decode_speed")
    gains = speed is not None and speed >= 1
    sure = " for sure" if speed_low is not None and speed_low > 1 else ""
    verb = f"decodes {shown} times as fast{sure if gains else ''}"
    return [
        _factor(
            "acceptance_factor",
            f"a pass yields {_between(overall, 'tokens_per_pass')} tokens",
            tokens,
            is_good=low is not None and low > 1,
        ),
        _factor(
            "step_factor",
            f"a pass takes {_between(overall, 'step_ratio')} times as long as one of "
            "the baseline",
            ratio,
            is_good=high is not None and high < tokens,
        ),
        Check(
            name="break_even",
            status=Status.PASSED if tokens >= ratio else Status.INCONCLUSIVE,
            reason=f"a pass yields {tokens:.2f} tokens and costs {ratio:.2f} plain "
            f"ones: the candidate {verb}",
            kind="value",
            candidate=tokens,
            limit=ratio,
            required=False,
        ),
    ]


def _factor(name: str, reason: str, value: float, *, is_good: bool) -> Check:
    return Check(
        name=name,
        status=Status.PASSED if is_good else Status.INCONCLUSIVE,
        reason=reason,
        kind="value",
        candidate=value,
        required=False,
    )


def _between(overall: Mapping[str, float | None], name: str) -> str:
    value = overall.get(name)
    low, high = overall.get(f"{name}_low"), overall.get(f"{name}_high")
    if value is None:
        return "an unknown number of"
    if low is None or high is None:
        return f"{value:.2f}"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _drift(evidence: Evidence) -> list[Check]:
    """Acceptance against the stored reference of the same workload."""
    if evidence.agreed.performance.acceptance.reference is None:
        return []
    rows = evidence.acceptance.tables.get("drift", ())
    if not rows:
        why = [n for n in evidence.acceptance.notes if n.startswith(NO_DRIFT)]
        reason = why[0] if why else f"{NO_DRIFT}: the reference was not kept"
        return [Check(name="drift", status=Status.NOT_MEASURED, reason=reason)]
    fell = [row for row in rows if row["fell"]]
    shown = fell or [row for row in rows if row["where"] == "overall"]
    told = "; ".join(
        f"{str(row['metric']).replace('_', ' ')} {row['then']:.3g} -> "
        f"{row['now']:.3g} ({row['where']})"
        for row in shown
    )
    return [
        Check(
            name="drift",
            status=Status.FAILED if fell else Status.PASSED,
            reason=f"below the reference: {told}" if fell else f"as it was: {told}",
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
    """Under the top load, and back at a load that was there before."""
    rows = [
        row
        for row in evidence.acceptance.tables.get("by_load", ())
        if str(row["load"]).startswith("sweep")
    ]
    if len(rows) < 2:
        return []
    first, top = rows[0], max(rows, key=_level)
    checks = [_decays("holds_under_load", first, top)]
    again = [row for row in rows if str(row["load"]).startswith(f"{first['load']}, ")]
    checks += [_decays("recovers_after_load", first, again[-1])] if again else []
    return [check for check in checks if check is not None]


def _level(row: Row) -> float:
    """The load of a row; ``sweep c16, time 2`` is 16."""
    found = re.search(r"[0-9.]+", str(row["load"]))
    return float(found[0]) if found else 0.0


def _decays(name: str, first: Row, later: Row) -> Check | None:
    before, after = _cell(first, "tokens_per_pass"), _cell(later, "tokens_per_pass")
    low, high = (
        _cell(first, "tokens_per_pass_low"),
        _cell(later, "tokens_per_pass_high"),
    )
    if before is None or after is None or first is later:
        return None
    sure = low is not None and high is not None and high < low
    decays = sure and after < LOAD_DECAY * before
    return Check(
        name=name,
        status=Status.FAILED if decays else Status.PASSED,
        reason=f"{before:.2f} tokens per pass at {first['load']}, {after:.2f} at "
        f"{later['load']}",
        kind="ratio",
        baseline=before,
        candidate=after,
        estimate=after / before,
        limit=LOAD_DECAY,
        required=False,
    )


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
