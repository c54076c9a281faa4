"""Are the choices of one request (``n > 1``) drawn independently of each other?

Samples of one request that share random numbers are more alike than samples of two
requests with the same prompt. The null distribution comes from dealing the answers of a
prompt anew to its requests.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from routeproof.stats.two_sample import TwoSample, alikeness


def siblings_test(
    prompts: Sequence[Sequence[Sequence[str]]],
    *,
    length: int = 64,
    permutations: int = 1000,
    seed: int = 0,
) -> TwoSample:
    """One-sided permutation test that siblings are no more alike than strangers.

    The statistic sums, over prompts, the mean share of characters at which two
    siblings agree, less that of two answers to different requests.

    Args:
        prompts: For each prompt its requests, for each request its choices.
        length: Characters compared.
        permutations: Random deals; the p-value is at least 1 / (this + 1).
        seed: Of the deals.
    """
    rng = np.random.default_rng(seed)
    total, used, answers = np.zeros(permutations + 1), 0, 0
    for requests in prompts:
        groups = [list(each) for each in requests if len(each) > 1]
        if len(groups) < 2:
            continue
        used += 1
        flat = [text for each in groups for text in each]
        answers += len(flat)
        label = np.repeat(np.arange(len(groups)), [len(each) for each in groups])
        total += _excess(alikeness(flat, length), label, permutations, rng)
    skipped = len(prompts) - used
    if not used:
        return TwoSample(0.0, None, 0, 0, skipped)
    as_alike = np.count_nonzero(total[1:] >= total[0] - 1e-9)
    p = (1 + int(as_alike)) / (1 + permutations)
    return TwoSample(float(total[0]), p, used, answers, skipped)


def _excess(
    alike: NDArray[np.float64],
    label: NDArray[np.int64],
    permutations: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Alikeness of siblings less that of strangers: as it is, then for each deal."""
    labels = np.tile(label, (permutations + 1, 1))
    labels[1:] = rng.permuted(labels[1:], axis=1)
    upper = np.triu_indices(label.size, k=1)
    pair = alike[upper]
    is_sibling = labels[:, upper[0]] == labels[:, upper[1]]
    inside = (is_sibling * pair).sum(axis=1) / is_sibling.sum(axis=1)
    outside = (~is_sibling * pair).sum(axis=1) / (~is_sibling).sum(axis=1)
    found: NDArray[np.float64] = inside - outside
    return found
