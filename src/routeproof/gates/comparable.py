"""Was the same sent to both arms, in turns, and with a control?"""

import numpy as np

from routeproof.gates.facts import ValidityRow
from routeproof.metrics.pairs import pair_arms
from routeproof.metrics.requests import Requests
from routeproof.records.manifest import ClientHealth

TEMPLATE_FIELDS = ("tokenizer", "model", "revision", "engine")
"""Changes that explain another number of prompt tokens for the same case."""


def workload_matches(requests: Requests) -> bool | None:
    """Whether both arms were sent the same cases; ``None`` when an arm is absent.

    A part of the cases may be missing on one arm (an interrupted run); those pairs
    are counted as missing. Arms that share less than half of the larger set were
    sent something else.
    """
    found = [_cases(requests, arm) for arm in ("baseline", "candidate")]
    if not found[0] or not found[1]:
        return None
    return len(found[0] & found[1]) * 2 >= max(len(found[0]), len(found[1]))


def _cases(requests: Requests, arm: str) -> set[int]:
    codes = requests.label("case_id").codes[requests.at(arm=arm)]
    return set(np.unique(codes).tolist())


def asked_otherwise(requests: Requests) -> tuple[int, int]:
    """Pairs of baseline and candidate that were sent other parameters, and all pairs.

    Over every phase in which both arms were asked the same; only pairs of which both
    sides are known (a run of an older version does not tell).
    """
    asked = requests.label("asked").codes
    otherwise = known = 0
    for phase in dict.fromkeys(phase for phase, _ in requests.levels()):
        pairs = pair_arms(requests, phase=phase, other="candidate")
        left, right = asked[pairs.left], asked[pairs.right]
        told = (left >= 0) & (right >= 0)
        known += int(told.sum())
        otherwise += int((told & (left != right)).sum())
    return otherwise, known


def is_interleaved(requests: Requests, *, skip: tuple[str, ...] = ()) -> bool | None:
    """Whether blocks of baseline and candidate took turns at every load.

    Phases in ``skip`` are not looked at: their baseline is of an earlier run.

    Told of the stages in which both arms ran two blocks or more: there, one arm must
    not have run all of its blocks before the other began. ``None`` when no stage has
    as many.
    """
    at, block = requests.number("intended_s"), requests.number("block")
    seen = False
    for phase, level in requests.levels():
        if phase in ("warmup", "probe", *skip):
            continue
        spans = []
        for arm in ("baseline", "candidate"):
            keep = requests.at(arm=arm, phase=phase, level=level)
            if np.unique(block.values[keep]).size >= 2:
                spans.append((at.values[keep].min(), at.values[keep].max()))
        if len(spans) == 2:
            seen = True
            if spans[0][1] < spans[1][0] or spans[1][1] < spans[0][0]:
                return False
    return True if seen else None


def has_control(requests: Requests) -> bool:
    """Whether the baseline was answered a second time, outside the warm-up."""
    control = requests.at(arm="control") & requests.served()
    warm = requests.at(phase="warmup") | requests.at(phase="probe")
    return bool((control & ~warm).any())


def asked_again(requests: Requests, *, is_greedy: bool) -> dict[str, int]:
    """How the baseline answers what it was asked before, in a run that reuses answers.

    What was taken over lies before the start of the run, so that its stamps are
    negative; pairs of baseline and control are told apart by the control's.
    """
    if not is_greedy:
        return {}
    pairs = pair_arms(requests, phase="quality", other="control")
    digest, due = requests.number("answer_digest"), requests.number("intended_s")
    known = digest.known[pairs.left] & digest.known[pairs.right]
    differs = (digest.values[pairs.left] != digest.values[pairs.right]) & known
    is_new = due.values[pairs.right] >= 0
    return {
        "again": int((known & is_new).sum()),
        "again_differs": int((differs & is_new).sum()),
        "before": int((known & ~is_new).sum()),
        "before_differs": int((differs & ~is_new).sum()),
    }


def prompt_token_problem(requests: Requests, changes: tuple[str, ...]) -> str | None:
    """The same case counted differently: another template or tokenizer is at work.

    ``None`` when counts agree, are not known, or a declared change explains them.
    """
    if any(name.split(".")[0] in TEMPLATE_FIELDS for name in changes):
        return None
    pairs = pair_arms(requests, phase="quality", other="candidate")
    tokens = requests.number("prompt_tokens")
    known = tokens.known[pairs.left] & tokens.known[pairs.right]
    left, right = tokens.values[pairs.left][known], tokens.values[pairs.right][known]
    differing = int((left != right).sum())
    if not differing:
        return None
    return (
        f"prompt tokens of the same case differ in {differing} of {left.size} pairs "
        f"({left.sum():.0f} and {right.sum():.0f} in all): template or tokenizer differ"
    )


def fingerprint_problem(requests: Requests) -> str | None:
    """An engine whose fingerprint changes in the middle of a run is not one route."""
    label = requests.label("fingerprint")
    for arm in ("baseline", "candidate"):
        keep = requests.at(arm=arm) & (label.codes >= 0)
        seen = np.unique(label.codes[keep]).tolist()
        if len(seen) > 1:
            names = ", ".join(sorted(label.names[code] for code in seen)[:3])
            return f"the fingerprint of the {arm} changed during the run: {names}"
    return None


def validity_rows(health: ClientHealth | None) -> tuple[ValidityRow, ...]:
    """The client's checks on itself, as it wrote them down."""
    if health is None:
        return ()
    rows = [
        ValidityRow(
            name=check.name,
            value=check.value,
            limit=check.limit,
            unit="",
            is_ok=check.ok,
            reason=_reason(check.name, check.value, check.limit, check.at_least),
        )
        for check in health.checks
    ]
    if not health.valid and all(row.is_ok is not False for row in rows):
        reason = "; ".join(health.reasons) or "the client found itself too slow"
        rows.append(
            ValidityRow(
                name="client",
                value=None,
                limit=None,
                unit="",
                is_ok=False,
                reason=reason,
            )
        )
    return tuple(rows)


def _reason(name: str, value: float | None, limit: float, at_least: bool) -> str:
    words = name.replace("_", " ")
    if value is None:
        return f"{words} was not measured"
    return f"{words} is {value:.3g}, {'at least' if at_least else 'at most'} {limit:g}"
