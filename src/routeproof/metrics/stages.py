"""Which stage of the run each request of a part belongs to."""

import numpy as np

from routeproof.metrics.per_request import Codes
from routeproof.metrics.requests import code
from routeproof.records.columns import Records

Stage = tuple[str, str, str]
"""Arm, phase, level."""


def stages_of(part: Records) -> tuple[list[Stage], Codes]:
    """(arm, phase, level) of a part, and which one each request belongs to."""
    columns = [code(part.text(name)) for name in ("arm", "phase", "level")]
    cells = np.zeros(part.n, dtype=np.int64)
    known = np.ones(part.n, dtype=np.bool_)
    for each in columns:
        cells = cells * len(each.names) + np.maximum(each.codes, 0)
        known &= each.codes >= 0
    seen, groups = np.unique(cells, return_inverse=True)
    stages = []
    for cell in seen.tolist():
        cell, level = divmod(cell, len(columns[2].names))
        arm, phase = divmod(cell, len(columns[1].names))
        places = (arm, phase, level)
        stages.append(tuple(c.names[i] for c, i in zip(columns, places, strict=True)))
    return stages, np.where(known, groups, -1)
