"""A fixed random sample of the answers whose score changed between the arms.

Faults of extraction outnumber faults of models: somebody has to look, and at answers
that chance picked, not at the worst ones.
"""

import random
from dataclasses import dataclass

from routeproof.scorers.score_columns import Scores


@dataclass(frozen=True, slots=True)
class ScoreFlip:
    """One (case, trial) that a scorer counts right on one arm and less so on the other.

    Attributes:
        is_loss: True when the candidate is worse.
        baseline_trace, candidate_trace: How each answer was read.
    """

    case_id: str
    trial: int
    phase: str
    level: str
    scorer: str
    is_loss: bool
    baseline_value: float
    candidate_value: float
    baseline_request: str
    candidate_request: str
    baseline_extracted: str | None
    candidate_extracted: str | None
    baseline_trace: str
    candidate_trace: str


def find_flips(
    scores: Scores, scorer: str, *, higher_is_better: bool = True
) -> list[ScoreFlip]:
    """Every pair whose value differs, in order of case, trial, phase and level."""
    own = scores.of(scorer)
    sides: dict[tuple[str, int, str, str], dict[str, int]] = {}
    for at in range(own.n):
        if own.value.known[at]:
            key = (own.case_id[at], int(own.trial[at]), own.phase[at], own.level[at])
            sides.setdefault(key, {})[own.arm[at]] = at
    found = []
    for key, rows in sorted(sides.items()):
        if "baseline" not in rows or "candidate" not in rows:
            continue
        one, other = rows["baseline"], rows["candidate"]
        change = own.value.values[other] - own.value.values[one]
        if change:
            is_loss = bool((change < 0) == higher_is_better)
            found.append(_flip(own, key, one, other, is_loss))
    return found


def _flip(
    own: Scores, key: tuple[str, int, str, str], one: int, other: int, is_loss: bool
) -> ScoreFlip:
    case_id, trial, phase, level = key
    return ScoreFlip(
        case_id=case_id,
        trial=trial,
        phase=phase,
        level=level,
        scorer=own.scorer[one],
        is_loss=is_loss,
        baseline_value=float(own.value.values[one]),
        candidate_value=float(own.value.values[other]),
        baseline_request=own.request_id[one],
        candidate_request=own.request_id[other],
        baseline_extracted=own.extracted[one],
        candidate_extracted=own.extracted[other],
        baseline_trace=own.trace[one],
        candidate_trace=own.trace[other],
    )


def sample_flips(
    scores: Scores,
    scorer: str,
    *,
    seed: int,
    each: int = 20,
    higher_is_better: bool = True,
) -> tuple[list[ScoreFlip], list[ScoreFlip]]:
    """At most ``each`` losses and gains, drawn by ``seed``, in their order.

    The draw depends on the seed and the flips alone: the same run shows the same
    sample on every machine.
    """
    flips = find_flips(scores, scorer, higher_is_better=higher_is_better)
    losses = [flip for flip in flips if flip.is_loss]
    gains = [flip for flip in flips if not flip.is_loss]
    return _draw(losses, each, seed), _draw(gains, each, seed)


def _draw(flips: list[ScoreFlip], most: int, seed: int) -> list[ScoreFlip]:
    if len(flips) <= most:
        return flips
    places = random.Random(seed).sample(range(len(flips)), most)
    return [flips[at] for at in sorted(places)]
