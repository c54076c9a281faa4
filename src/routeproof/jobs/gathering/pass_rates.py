"""pass@k where a proof asks for it: one value for each case from its samples."""

from dataclasses import replace

import numpy as np

from routeproof.errors import ConfigError
from routeproof.gates.questions import PASS_RATES, Question
from routeproof.scorers.pass_at_k import Kind, case_pass_at_k
from routeproof.scorers.scored import Scores, concatenate


def with_pass_rates(
    scores: Scores, asked: list[Question], phase: str
) -> tuple[Scores, tuple[str, ...]]:
    """Scores with further rows for every pass rate that is asked.

    Returns:
        The scores, and why a rate could not be estimated (too few samples).
    """
    parts, notes = [scores], []
    in_phase = scores.where(np.asarray(scores.phase == phase, dtype=np.bool_))
    for question in asked:
        kind = _kind(question.metric)
        if kind is None or question.k is None:
            continue
        try:
            found = case_pass_at_k(in_phase, question.k, kind=kind)
        except ConfigError as error:
            notes.append(error.message)
            continue
        name = np.full(found.n, question.scorer, dtype=object)
        parts.append(replace(found, scorer=name))
    return (concatenate(parts) if len(parts) > 1 else scores), tuple(notes)


def _kind(metric: str) -> Kind | None:
    kinds: dict[str, Kind] = {"pass_at_k": "pass_at_k", "pass_hat_k": "pass_hat_k"}
    return kinds[metric] if metric in PASS_RATES else None
