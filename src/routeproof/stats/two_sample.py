"""Do two routes draw from the same distribution of answers? Tests over repeated trials.

All three tests share one form: a kernel says how alike two answers to one prompt are,
the statistic is the squared distance between the arms' mean embeddings summed over
prompts, and its null distribution comes from permuting arms *inside* each prompt, so
prompts may be as different as they like. Sources: A. Gretton et al., JMLR 13 (2012)
723-773 (MMD); G. Székely and M. Rizzo, energy statistics (2013); the Hamming kernel on
answers is that of I. Gao, P. Liang and C. Guestrin, arXiv:2410.20247.

Failing to reject is not equivalence: a detector is worth the power it was shown to
have against injected faults (``docs/statistics.md``).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Answer = str | Sequence[int]
"""An answer as text or as token ids."""

Gram = NDArray[np.float64]
T = TypeVar("T")
_PAD = -1
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class TwoSample:
    """The outcome of a permutation test.

    Attributes:
        statistic: Sum over prompts; larger is more different.
        p_value: ``None`` when no prompt could be permuted.
        prompts: Prompts that entered: at least one answer per arm, three in all.
        answers: Answers that entered, both arms.
        skipped: Prompts with too few answers.
    """

    statistic: float
    p_value: float | None
    prompts: int
    answers: int
    skipped: int


def mmd_test(
    baseline: Sequence[Sequence[Answer]],
    candidate: Sequence[Sequence[Answer]],
    *,
    length: int = 256,
    permutations: int = 1000,
    seed: int = 0,
) -> TwoSample:
    """Maximum mean discrepancy of answers, with the Hamming kernel.

    The kernel of two answers is the share of positions at which they agree, over the
    longer one of them, both cut to ``length`` characters or tokens. Sees changes of
    temperature, truncation of the sampler and swapped tokens early in an answer; after
    the first difference two answers drift apart, so late faults need the other tests.

    Args:
        baseline: Answers of each prompt, as texts or token ids.
        candidate: The same prompts in the same order.
        length: Positions compared.
        permutations: Random permutations; the p-value is at least 1 / (this + 1).
        seed: Of the permutations.
    """

    def gram(answers: Sequence[Answer]) -> Gram:
        return alikeness(answers, length)

    return _permuted(baseline, candidate, gram, permutations, seed)


def energy_test(
    baseline: Sequence[ArrayLike],
    candidate: Sequence[ArrayLike],
    *,
    permutations: int = 1000,
    seed: int = 0,
) -> TwoSample:
    """Energy distance of numbers such as output lengths, on a log scale.

    ``log(1 + x)`` keeps prompts with long answers from deciding alone.

    Args:
        baseline: Numbers >= 0 for each prompt.
        candidate: The same prompts in the same order.
        permutations: Random permutations.
        seed: Of the permutations.
    """

    def gram(values: Sequence[float]) -> Gram:
        x = np.log1p(np.asarray(values, dtype=np.float64))
        near: Gram = -np.abs(x[:, None] - x[None, :])
        return near

    a = [list(np.asarray(v, dtype=np.float64).ravel()) for v in baseline]
    b = [list(np.asarray(v, dtype=np.float64).ravel()) for v in candidate]
    return _permuted(a, b, gram, permutations, seed)


def categorical_test(
    baseline: Sequence[Sequence[Hashable]],
    candidate: Sequence[Sequence[Hashable]],
    *,
    permutations: int = 1000,
    seed: int = 0,
) -> TwoSample:
    """Chi-square of categorical answers (choices, labels, tool names) over prompts.

    The statistic is Pearson's chi-square of each prompt's arm-by-answer table, summed;
    its null distribution is the permutation's, not the chi-square's, because tables of
    a few trials are sparse.

    Args:
        baseline: Answers of each prompt.
        candidate: The same prompts in the same order.
        permutations: Random permutations.
        seed: Of the permutations.
    """

    def gram(answers: Sequence[Hashable]) -> Gram:
        names = {answer: i for i, answer in enumerate(dict.fromkeys(answers))}
        code = np.array([names[answer] for answer in answers])
        times = np.bincount(code)[code]
        share: Gram = (code[:, None] == code[None, :]) / times[:, None]
        return share

    return _permuted(baseline, candidate, gram, permutations, seed, pearson=True)


def _permuted(
    baseline: Sequence[Sequence[T]],
    candidate: Sequence[Sequence[T]],
    gram: Callable[[Sequence[T]], Gram],
    permutations: int,
    seed: int,
    *,
    pearson: bool = False,
) -> TwoSample:
    if len(baseline) != len(candidate):
        raise ValueError(f"{len(baseline)} and {len(candidate)} prompts")
    rng = np.random.default_rng(seed)
    total = np.zeros(permutations + 1)
    prompts = answers = 0
    for a, b in zip(baseline, candidate, strict=True):
        if min(len(a), len(b)) < 1 or len(a) + len(b) < 3:
            continue
        prompts, answers = prompts + 1, answers + len(a) + len(b)
        scale = len(a) * len(b) if pearson else 1.0
        total += scale * _statistics(gram([*a, *b]), len(a), permutations, rng)
    skipped = len(baseline) - prompts
    if prompts == 0:
        return TwoSample(0.0, None, 0, 0, skipped)
    as_far = np.count_nonzero(
        total[1:] >= total[0] - 1e-9 * (prompts + np.abs(total).max())
    )
    p = (1 + int(as_far)) / (1 + permutations)
    return TwoSample(float(total[0]), p, prompts, answers, skipped)


def _statistics(
    gram: Gram, first: int, permutations: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Squared distance of the arms as they are, then for each permutation.

    ``s' K s`` with ``s = 1 / n_a`` on the one arm and ``-1 / n_b`` on the other.
    """
    n = gram.shape[0]
    label = np.where(np.arange(n) < first, 1 / first, -1 / (n - first))
    labels = np.tile(label, (permutations + 1, 1))
    labels[1:] = rng.permuted(labels[1:], axis=1)
    distance: NDArray[np.float64] = np.einsum("pi,pi->p", labels @ gram, labels)
    return distance


def alikeness(answers: Sequence[Answer], length: int) -> Gram:
    """Share of positions at which each two answers agree, shape ``(n, n)``."""
    return _hamming(_codes(answers, length))


def _codes(answers: Sequence[Answer], length: int) -> NDArray[np.int64]:
    """Answers as rows of codes, shape ``(n, longest)``, padded with -1."""
    rows = [
        [ord(c) for c in answer[:length]]
        if isinstance(answer, str)
        else list(answer[:length])
        for answer in answers
    ]
    codes = np.full((len(rows), max(1, *(len(row) for row in rows))), _PAD)
    for i, row in enumerate(rows):
        codes[i, : len(row)] = row
    return codes


def _hamming(codes: NDArray[np.int64]) -> Gram:
    """Share of positions that agree, over the longer of the two answers."""
    n, width = codes.shape
    lengths = (codes != _PAD).sum(axis=1)
    agree = np.empty((n, n))
    step = max(1, _CHUNK // (n * width))
    for start in range(0, n, step):
        rows = codes[start : start + step, None, :]
        same = (rows == codes[None, :, :]) & (rows != _PAD)
        agree[start : start + step] = same.sum(axis=2)
    longer = np.maximum(lengths[:, None], lengths[None, :])
    # Two empty answers are alike.
    return np.where(longer > 0, agree / np.maximum(longer, 1), 1.0)
