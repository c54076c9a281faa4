"""Length distributions of the arms, over edges that all arms share."""

from typing import Literal

import numpy as np

from routeproof.gates.facts import LengthRow
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Floats

BINS = 24

What = Literal["prompt_tokens", "output_tokens", "output_characters"]

_WHAT: tuple[tuple[What, str], ...] = (
    ("prompt_tokens", "prompt_tokens"),
    ("output_tokens", "output_tokens"),
    ("output_characters", "answer_characters"),
)


def length_rows(requests: Requests, phase: str) -> tuple[LengthRow, ...]:
    """Prompt and output lengths of every arm in one phase, of what was served."""
    rows = []
    for what, column in _WHAT:
        found = {arm: _values(requests, phase, arm, column) for arm in _arms(requests)}
        edges = _edges(np.concatenate(list(found.values()))) if found else None
        for arm, values in found.items():
            if edges is None or not values.size:
                continue
            counts, _ = np.histogram(values, bins=edges)
            rows.append(
                LengthRow(
                    arm=arm,
                    what=what,
                    n=int(values.size),
                    mean=float(values.mean()),
                    edges=tuple(edges.tolist()),
                    counts=tuple(counts.tolist()),
                )
            )
    return tuple(rows)


def _arms(requests: Requests) -> list[str]:
    present = requests.label("arm").names
    return [arm for arm in ("baseline", "candidate", "control") if arm in present]


def _values(requests: Requests, phase: str, arm: str, column: str) -> Floats:
    keep = requests.at(arm=arm, phase=phase) & requests.served()
    numbers = requests.number(column)
    return numbers.values[keep & numbers.known]


def _edges(values: Floats) -> Floats | None:
    """Whole numbers, even in the logarithm: lengths spread over decades."""
    if not values.size:
        return None
    low, high = max(1.0, float(values.min())), float(values.max()) + 1
    edges = np.unique(np.round(np.geomspace(low, max(high, low + 1), BINS + 1)))
    edges[0] = min(edges[0], float(values.min()))
    return edges
