"""The speed of a speculative route in two factors, each with its interval.

``decode speed = tokens per pass / step ratio``: how many tokens a pass yields is the
workload's doing, how much longer a drafting and verifying pass takes than a plain one
is the system's. This is why a route can accept 5.6 tokens and gain a factor 1.2.
"""

import numpy as np
from numpy.typing import NDArray

from routeproof.gates.load import Load
from routeproof.metrics.acceptance import break_even_tokens_per_pass
from routeproof.metrics.acceptance_requests import Estimate, estimate, step_time
from routeproof.metrics.pairs import pair_arms
from routeproof.records.columns import Bools, Column

NAMES = ("step_ratio", "decode_speed")


def speed_factors(load: Load, draft_tokens: int | None) -> dict[str, float | None]:
    """Step ratio and decode speed, from the same prompt on both routes.

    Both are ratios of sums over pairs, with bootstrap intervals over cases at the
    one-sided level of the policy; the third factor, tokens per pass, has its own in
    the profile. ``break_even_tokens_per_pass`` is the tokens a pass must yield.
    """
    left, right = _pairs(load)
    requests = load.requests
    per_token = step_time(requests, speculates=False)
    step = step_time(requests, speculates=True, draft_tokens=draft_tokens)
    found: dict[str, float | None] = {}
    for name, above, below in (
        ("step_ratio", _of(step, right), _of(per_token, left)),
        ("decode_speed", _of(per_token, left), _of(per_token, right)),
    ):
        made = _estimate(load, above, below, left)
        found[name] = made.micro
        found[f"{name}_low"], found[f"{name}_high"] = made.low, made.high
    ratio = found["step_ratio"]
    found["break_even_tokens_per_pass"] = (
        None if not ratio else break_even_tokens_per_pass(ratio - 1)
    )
    return found


def _pairs(load: Load) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    requests = load.requests
    phases = dict.fromkeys(phase for phase, _ in requests.levels())
    found = [
        pair_arms(requests, phase=phase, other="candidate")
        for phase in phases
        if phase not in ("warmup", "probe")
    ]
    if not found:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty
    return (
        np.concatenate([pairs.left for pairs in found]),
        np.concatenate([pairs.right for pairs in found]),
    )


def _of(column: Column, rows: NDArray[np.int64]) -> Column:
    return Column(column.values[rows], column.known[rows])


def _estimate(
    load: Load, above: Column, below: Column, left: NDArray[np.int64]
) -> Estimate:
    case = load.requests.label("case_id").codes.astype(np.int64)[left]
    every: Bools = np.ones(left.size, dtype=np.bool_)
    return estimate(
        above,
        below,
        every,
        unit=case,
        level=1 - 2 * load.agreed.policy.alpha,
        seed=load.seed,
    )
