"""pass@k and pass^k from the samples of each case.

The unit is the case: its samples give one value, never several.
"""

from math import comb
from typing import Literal

import numpy as np

from routeproof.errors import ConfigError
from routeproof.records.columns import Column
from routeproof.scorers.score_columns import Scores, as_texts_column

Kind = Literal["pass_at_k", "pass_hat_k"]


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Chance that at least one of ``k`` samples drawn without replacement passes.

    ``1 - C(samples - passed, k) / C(samples, k)``: the unbiased estimator of Chen et
    al. 2021, exact in integers.

    Raises:
        ConfigError: ``k`` is larger than the number of samples, or below 1.

    Example:
        >>> pass_at_k(4, 2, 1), pass_at_k(4, 2, 3)
        (0.5, 1.0)
    """
    _check(samples, passed, k)
    return 1 - comb(samples - passed, k) / comb(samples, k)


def pass_hat_k(samples: int, passed: int, k: int) -> float:
    """Chance that all of ``k`` samples drawn without replacement pass.

    ``C(passed, k) / C(samples, k)``: reliability, where pass@k is potential.

    Raises:
        ConfigError: ``k`` is larger than the number of samples, or below 1.

    Example:
        >>> pass_hat_k(4, 2, 1), pass_hat_k(4, 2, 3)
        (0.5, 0.0)
    """
    _check(samples, passed, k)
    return comb(passed, k) / comb(samples, k)


def _check(samples: int, passed: int, k: int) -> None:
    if not 1 <= k <= samples:
        raise ConfigError(
            f"pass@{k} cannot be estimated from {samples} samples",
            hint="ask for at least k trials per case, or lower k",
        )
    if not 0 <= passed <= samples:
        raise ConfigError(f"{passed} of {samples} samples passed: not possible")


def case_pass_at_k(
    scores: Scores, k: int, *, scorer: str = "code", kind: Kind = "pass_at_k"
) -> Scores:
    """One row per (arm, phase, level, case) with its pass@k (or pass^k).

    A case with a failed or unscored sample gets an unknown value: dropping the sample
    would change what is estimated.

    Args:
        scores: With rows of a binary scorer, one per trial.
        k: At most the number of trials of every case.
        scorer: Whose rows to read.
        kind: ``pass_at_k`` (at least one) or ``pass_hat_k`` (all).

    Raises:
        ConfigError: A case has fewer than ``k`` samples.
    """
    own = scores.of(scorer)
    keys = list(zip(own.arm, own.phase, own.level, own.case_id, strict=True))
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for at, key in enumerate(keys):
        groups.setdefault(key, []).append(at)
    firsts = np.array([rows[0] for rows in groups.values()], dtype=np.int64)
    estimate = pass_at_k if kind == "pass_at_k" else pass_hat_k
    values, known, traces = [], [], []
    for (*_, case_id), rows in groups.items():
        passed = int(own.value.values[rows].sum())
        try:
            value = estimate(len(rows), passed, k)
        except ConfigError as error:
            raise ConfigError(
                f"case {case_id}: {error.message}", hint=error.hint
            ) from None
        values.append(value)
        known.append(bool(own.value.known[rows].all()))
        traces.append(f"{passed} of {len(rows)} samples passed")
    keep = np.zeros(own.n, dtype=np.bool_)
    keep[firsts] = True
    picked = own.where(keep)
    return Scores(
        request_id=picked.request_id,
        arm=picked.arm,
        phase=picked.phase,
        level=picked.level,
        case_id=picked.case_id,
        cluster=picked.cluster,
        task_class=picked.task_class,
        tags=picked.tags,
        scorer=as_texts_column([kind for _ in values]),
        class_=as_texts_column(["graded" if ok else "unscored" for ok in known]),
        extracted=as_texts_column([None for _ in values]),
        trace=as_texts_column(traces),
        trial=np.zeros(len(values), dtype=np.int64),
        version=picked.version,
        value=Column(np.array(values), np.array(known, dtype=np.bool_)),
    )
