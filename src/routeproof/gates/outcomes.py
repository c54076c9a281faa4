"""How requests ended, arm against arm; and the guard against degenerate answers."""

import numpy as np

from routeproof.gates.answers import Rules, Sides, answered
from routeproof.gates.facts import QualityRow, Row
from routeproof.gates.in_order import Order, Turn
from routeproof.gates.questions import Question
from routeproof.metrics.honoured import HONOURED
from routeproof.metrics.pairs import Pairs, pair_arms
from routeproof.metrics.requests import Requests
from routeproof.metrics.score_table import PairedScores
from routeproof.records.columns import Bools, Column
from routeproof.stats.paired_binary import harm_p_value

OUTCOME_TOLERANCE = 0.02
"""More requests that end this way are tolerated up to this share."""

ENDS: dict[str, frozenset[str]] = {
    "no_errors": frozenset(
        {
            "http_error",
            "stream_error",
            "cut_short",
            "invalid_response",
            "timeout",
            "connection_error",
        }
    ),
    "not_truncated": frozenset({"truncated"}),
    "not_empty": frozenset({"empty"}),
    "not_filtered": frozenset({"refused"}),
}
"""Questions asked of how requests end: each names the ends that count against it."""

GUARD_POINTS = 0.02
"""Share of degenerate answers beyond the baseline's from which the guard trips."""


def outcome_rows(
    requests: Requests, phase: str, alpha: float, *, order: Order | None = None
) -> list[QualityRow]:
    """Whether a bad end became more frequent: in ``phase``, and errors under load.

    With ``order``, the cases of ``phase`` are taken one after the other, by tests that
    hold whenever the run stops.
    """
    rows = []
    for name, ends in ENDS.items():
        asked, at = _asked(name, {}), (phase, None)
        rows += _row(requests, asked, at, ends, alpha, order=order)
    for stage in requests.levels():
        if stage[0] in ("latency", "sweep", "soak") and stage[0] != phase:
            asked = _asked("no_errors", {"phase": stage[0], "level": stage[1]})
            rows += _row(requests, asked, stage, ENDS["no_errors"], alpha)
    return rows


def parameter_rows(requests: Requests, phase: str, alpha: float) -> list[QualityRow]:
    """Whether parameters that the baseline honours are honoured by the candidate.

    Asked with a tolerance of 0: no new failures beyond what the A/A control shows.
    """
    rows = []
    for name in HONOURED:
        column = requests.number(f"honoured:{name}")
        if not column.known.any():
            continue
        sides = []
        for other in ("candidate", "control"):
            pairs = pair_arms(requests, phase=phase, other=other)
            known = column.known[pairs.left] & column.known[pairs.right]
            kept = Pairs(
                pairs.left[known], pairs.right[known], pairs.only_left, pairs.only_right
            )
            sides.append(_as_scores(requests, kept, column.values > 0))
        if sides[0].n:
            question = Question(f"{name}_honoured", 0.0, "outcome", is_required=False)
            control = sides[1] if sides[1].n else None
            rows += answered(question, Sides(sides[0], control), Rules(alpha=alpha))
    return rows


def _asked(name: str, where: dict[str, str]) -> Question:
    return Question(name, OUTCOME_TOLERANCE, "outcome", slice=where, is_required=False)


def _row(
    requests: Requests,
    question: Question,
    at: tuple[str, str | None],
    ends: frozenset[str],
    alpha: float,
    order: Order | None = None,
) -> list[QualityRow]:
    pairs = pair_arms(requests, phase=at[0], level=at[1], other="candidate")
    control = pair_arms(requests, phase=at[0], level=at[1], other="control")
    if not pairs.n:
        return []
    good = ~_ended(requests, ends)
    scores = _as_scores(requests, pairs, good)
    turn = None
    if order is not None:
        first = order.first({case.id: case for case in order.cases}, is_binary=True)
        names = requests.label("case_id").names
        looked_at = np.array([name in first.place for name in names] + [False])
        scores = scores.where(looked_at[scores.case])
        turn = Turn.of(first, scores, names)
    sides = Sides(scores, _as_scores(requests, control, good) if control.n else None)
    rules = Rules(alpha=alpha, resamples=2_000, turn=turn)
    return answered(question, sides, rules)[:1]


def _ended(requests: Requests, ends: frozenset[str]) -> Bools:
    outcome = requests.label("outcome")
    bad = np.array([name in ends for name in outcome.names] + [False])
    found: Bools = bad[outcome.codes]
    return found


def _as_scores(requests: Requests, pairs: Pairs, good: Bools) -> PairedScores:
    case = requests.label("case_id").codes[pairs.left].astype(np.int64)
    known = np.ones(pairs.n, dtype=np.bool_)
    return PairedScores(
        case=case,
        cluster=case,
        left=Column(good[pairs.left].astype(np.float64), known),
        right=Column(good[pairs.right].astype(np.float64), known),
        left_rows=pairs.left,
        right_rows=pairs.right,
    )


def outcome_counts(requests: Requests) -> tuple[Row, ...]:
    """Rows (arm, phase, outcome, count, share); every request counts."""
    rows: list[Row] = []
    arms, phases = requests.label("arm"), requests.label("phase")
    outcomes = requests.label("outcome")
    for arm in sorted(arms.names):
        for phase in sorted(phases.names):
            keep = arms.equal(arm) & phases.equal(phase)
            total = int(keep.sum())
            for outcome in sorted(outcomes.names):
                count = int((keep & outcomes.equal(outcome)).sum())
                if count:
                    rows.append(
                        {
                            "arm": arm,
                            "phase": phase,
                            "outcome": outcome,
                            "count": count,
                            "share": count / total,
                        }
                    )
    return tuple(rows)


def guard_rows(requests: Requests, phase: str, alpha: float) -> tuple[Row, ...]:
    """The degeneration guard: more loops or garbage than the baseline.

    Trips when the paired excess is significant (exact McNemar at ``alpha``) and at
    least ``GUARD_POINTS``. A baseline that loops as much does not trip it.
    """
    rows = [
        _guard(requests, "is_degenerate", "degenerate", phase, alpha),
        *(
            _guard(requests, "is_looping", f"loops[{stage}]", stage, alpha)
            for stage in dict.fromkeys(p for p, _ in requests.levels())
            if stage not in ("warmup", "probe")
        ),
    ]
    return tuple(row for row in rows if row is not None)


def _guard(
    requests: Requests, column: str, check: str, phase: str, alpha: float
) -> Row | None:
    pairs = pair_arms(requests, phase=phase, other="candidate")
    numbers = requests.number(column)
    known = numbers.known[pairs.left] & numbers.known[pairs.right]
    if not known.any():
        return None
    left, right = numbers.values[pairs.left][known], numbers.values[pairs.right][known]
    # Repeats of a case are no independent evidence: a case votes once.
    case = requests.label("case_id").codes[pairs.left][known]
    excess = np.bincount(case, right - left)
    losses, gains = int((excess > 0).sum()), int((excess < 0).sum())
    p = harm_p_value(losses=losses, gains=gains)
    shares = float(left.mean()), float(right.mean())
    is_tripped = p <= alpha and shares[1] - shares[0] >= GUARD_POINTS
    return {
        "check": check,
        "baseline": shares[0],
        "candidate": shares[1],
        "pairs": int(known.sum()),
        "p_value": p,
        "tripped": is_tripped,
        "reason": f"{shares[1]:.1%} of the candidate's answers are degenerate, "
        f"{shares[0]:.1%} of the baseline's ({check}, {int(known.sum())} pairs)",
    }
