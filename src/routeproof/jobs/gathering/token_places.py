"""Sampled tokens under the baseline's own probabilities, taken from stored answers.

Where a token's whole prefix is also that of an answer of the baseline, the baseline has
told its distribution there. Every such token of another arm is a draw to be tested,
whatever the texts say later on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from routeproof.gates.facts import Row
from routeproof.jobs.gathering.answer_texts import AnswerText
from routeproof.proof.workload import SamplingSpec
from routeproof.stats.drawn_from import Listed, Sampler, listed
from routeproof.stats.sampled_tokens import sampled_tokens_test
from routeproof.workloads.case import Case

MOST_TOKENS = 20_000
FEWEST_TOKENS = 100
POWER_RUNS = 40
HOTTER = 1.05
SWAPPED = 0.01

Tokens = list[tuple[str, dict[str, float]]]


def sampler_of(case: Case | None, sampling: SamplingSpec) -> Sampler:
    """The sampling parameters a request of a case was sent with."""
    own: Mapping[str, Any] = {} if case is None else case.parameters

    def number(name: str) -> float | None:
        value = own.get(name, getattr(sampling, name))
        return float(value) if isinstance(value, int | float) else None

    top_k = number("top_k")
    return Sampler(
        temperature=number("temperature") or 0.0,
        top_k=None if top_k is None else int(top_k),
        top_p=number("top_p"),
        min_p=number("min_p"),
    )


@dataclass
class _Prefixes:
    """The baseline's answers to one prompt as a tree of tokens."""

    sampler: Sampler
    next: dict[tuple[int, str], int] = field(default_factory=dict)
    told: dict[int, Listed | None] = field(default_factory=dict)

    def take(self, answer: Tokens) -> None:
        node = 0
        for token, alternatives in answer:
            if node not in self.told:
                self.told[node] = listed(alternatives, self.sampler)
            node = self.next.setdefault((node, token), len(self.next) + 1)

    def places(self, answer: Tokens) -> Iterable[tuple[int, str, Listed]]:
        """(position, token, distribution) as long as the prefix is known."""
        node: int | None = 0
        for position, (token, _) in enumerate(answer):
            if node is None or node not in self.told:
                return
            found = self.told[node]
            if found is not None:
                yield position, token, found
            node = self.next.get((node, token))


@dataclass(frozen=True, slots=True)
class _Draws:
    """Tokens of one arm with what they should have been drawn from."""

    before: list[float]
    share: list[float]
    position: list[int]
    sources: list[Listed]
    prompts: int

    def p_value(self, seed: int) -> float | None:
        if len(self.before) < FEWEST_TOKENS:
            return None
        return sampled_tokens_test(
            self.before, self.share, position=self.position, seed=seed
        ).p_value


def token_row(
    keys: Mapping[str, Sequence[Sequence[float]]],
    samplers: Sequence[Sampler],
    texts: Mapping[float, AnswerText],
    *,
    alpha: float,
    seed: int,
) -> Row | None:
    """Row (test, p_value, control_p_value, prompts, answers, power) of the token test.

    Args:
        keys: By arm, the request keys of the trials of each prompt.
        samplers: Of each prompt, in the same order.
        texts: Answers by key, with log probabilities.
        alpha: Level at which the power is measured.
        seed: Of the test's own draws and of the faults injected for the power.

    Returns:
        ``None`` with fewer than ``FEWEST_TOKENS`` tokens whose distribution is known.
    """
    candidate, control = (
        _draws(keys["baseline"], keys[arm], samplers, texts)
        for arm in ("candidate", "control")
    )
    p = candidate.p_value(seed)
    if p is None:
        return None
    return {
        "test": "sampled_tokens",
        "p_value": p,
        "control_p_value": control.p_value(seed),
        "prompts": candidate.prompts,
        "answers": len(candidate.before),
        "power": measured_power(candidate.sources, alpha=alpha, seed=seed),
    }


def _draws(
    baseline: Sequence[Sequence[float]],
    other: Sequence[Sequence[float]],
    samplers: Sequence[Sampler],
    texts: Mapping[float, AnswerText],
) -> _Draws:
    found = _Draws([], [], [], [], prompts=0)
    prompts = 0
    for mine, theirs, sampler in zip(baseline, other, samplers, strict=True):
        tree = _Prefixes(sampler)
        for key in mine:
            tree.take(_tokens(texts, key))
        before = len(found.before)
        for key in theirs:
            for position, token, source in tree.places(_tokens(texts, key)):
                place = source.place(token)
                if place is not None and len(found.before) < MOST_TOKENS:
                    found.before.append(place[0])
                    found.share.append(place[1])
                    found.position.append(position)
                    found.sources.append(source)
        prompts += len(found.before) > before
    return _Draws(found.before, found.share, found.position, found.sources, prompts)


def _tokens(texts: Mapping[float, AnswerText], key: float) -> Tokens:
    answer = texts.get(key)
    if answer is None or not answer.logprobs:
        return []
    try:
        rows = msgspec.json.decode(answer.logprobs, type=list[Any])
        return [(str(row[0]), {str(t): float(p) for t, p in row[2]}) for row in rows]
    except (msgspec.DecodeError, IndexError, TypeError, ValueError):
        return []


def measured_power(sources: Sequence[Listed], *, alpha: float, seed: int) -> str:
    """Share of runs in which the same test sees a fault put into these very draws."""
    rng = np.random.default_rng(seed)
    widest = max(source.share.size for source in sources)
    share = np.zeros((len(sources), widest))
    for row, source in zip(share, sources, strict=True):
        row[: source.share.size] = source.share
    hot = share ** (1 / HOTTER)
    hot /= hot.sum(axis=1, keepdims=True)
    seen = {"hot": 0, "swapped": 0}
    for run in range(POWER_RUNS):
        drawn = {"hot": _drawn(hot, rng), "swapped": _drawn(share, rng)}
        swapped = rng.random(len(sources)) < SWAPPED
        other = rng.integers(0, widest, len(sources))
        drawn["swapped"] = np.where(swapped, other, drawn["swapped"])
        for fault, token in drawn.items():
            p = _p_value(share, token, seed + run)
            seen[fault] += p is not None and p <= alpha
    told = {name: f"{count / POWER_RUNS:.0%}" for name, count in seen.items()}
    return (
        f"sees a temperature 5 % higher in {told['hot']} of simulated runs, 1 % of "
        f"tokens swapped in {told['swapped']}"
    )


def _drawn(share: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    uniform = rng.random((share.shape[0], 1))
    index: NDArray[np.int64] = (uniform > np.cumsum(share, axis=1)).sum(axis=1)
    return index.clip(max=share.shape[1] - 1)


def _p_value(
    share: NDArray[np.float64], token: NDArray[np.int64], seed: int
) -> float | None:
    row = np.arange(token.size)
    own = share[row, token]
    ahead = np.cumsum(share, axis=1)[row, token] - own
    return sampled_tokens_test(np.clip(ahead, 0.0, 1.0), own, seed=seed).p_value
