"""Which answers are degenerate, by the full look of the degeneration scorer."""

import numpy as np

from routeproof.metrics.per_request import request_keys
from routeproof.metrics.timing import served
from routeproof.records.columns import Bools, Column, Records
from routeproof.scorers.degeneration import MIN_CHARACTERS, Limits, measure

MOST_PER_PART = 4_000
"""Answers looked at in one part; the same cases of every arm, chosen by their key."""


def degenerate_column(records: Records, *, most: int = MOST_PER_PART) -> Column:
    """1 where an answer of the quality phase is degenerate, 0 where it is not.

    Known for served answers of the quality phase; when a part holds more than
    ``most`` of them, for those of an even share of its (case, trial) keys, so that
    pairs stay whole.
    """
    wanted = served(records) & records.is_in("phase", "quality")
    if wanted.sum() > most:
        wanted &= _share_of_cases(records, most / float(wanted.sum()))
    values = np.zeros(records.n)
    texts = records.text("text")
    limits = Limits()
    for row in np.flatnonzero(wanted).tolist():
        text = texts[row]
        if text is not None and len(text) >= MIN_CHARACTERS:
            values[row] = float(measure(text).problem(limits) is not None)
    return Column(values, wanted)


def _share_of_cases(records: Records, share: float) -> Bools:
    trials = records.number("trial").values.astype(np.int64).tolist()
    cases = records.text("case_id")
    names = np.empty(records.n, dtype=object)
    names[:] = [f"{case}/{trial}" for case, trial in zip(cases, trials, strict=True)]
    keys = request_keys(names).values
    found: Bools = keys < share * 2.0**52
    return found
