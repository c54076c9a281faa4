"""Requests that were sent twice with one seed: were they answered alike?"""

import numpy as np

from routeproof.gates.facts import Row
from routeproof.metrics.requests import Requests
from routeproof.proof.workload import WorkloadSpec

PHASES = ("quality", "latency", "sweep", "soak")


def repeat_rows(requests: Requests, workload: WorkloadSpec) -> tuple[Row, ...]:
    """Rows (arm, repeats, equal) of sampled requests that every arm was sent twice.

    A case has the same seed in every phase (the trial alone raises it), so what one
    phase asked another often asks again. Each case and trial counts once: its first
    two answers. Empty without a seed or a temperature, and with a cold cache, where a
    mark makes each prompt another.
    """
    sampling = workload.sampling
    if (
        sampling.seed is None
        or not sampling.temperature
        or workload.load.cache == "cold"
    ):
        return ()
    case, trial = requests.label("case_id").codes, requests.number("trial").values
    digest = requests.number("answer_digest")
    asked = np.zeros(requests.n, dtype=np.bool_)
    for phase in PHASES:
        asked |= requests.at(phase=phase)
    good = requests.served() & digest.known & asked & (case >= 0)
    found: list[Row] = []
    for arm in ("baseline", "candidate"):
        rows = np.flatnonzero(good & requests.at(arm=arm))
        rows = rows[np.lexsort((trial[rows], case[rows]))]
        same = (np.diff(case[rows]) == 0) & (np.diff(trial[rows]) == 0)
        # The first step into a run of equal requests is the pair of its first two.
        first = same & np.concatenate(([True], ~same[:-1])) if same.size else same
        equal = np.diff(digest.values[rows]) == 0
        found.append(
            {
                "arm": arm,
                "repeats": int(first.sum()),
                "equal": int((first & equal).sum()),
            }
        )
    return tuple(found)
