"""Sampled answers of both arms: are they drawn from one distribution?"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeproof.gates.facts import Row
from routeproof.jobs.gathering.answer_texts import AnswerText
from routeproof.metrics.requests import Requests
from routeproof.stats.multiplicity import holm
from routeproof.stats.two_sample import (
    TwoSample,
    categorical_test,
    energy_test,
    mmd_test,
)

MOST_PROMPTS = 160
MOST_TRIALS = 12
FEWEST_TRIALS = 2
TESTS = ("distribution", "first_token", "length")
POWER_PROMPTS = 32
POWER_RUNS = 12
POWER_PERMUTATIONS = 199
POWER_SHARE = 0.2
"""Share of answers exchanged when the power is measured."""

Keys = dict[str, list[list[float]]]
"""By arm: request keys of the trials of each prompt, prompts in the same order."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Which sampled answers are compared, by request key.

    Attributes:
        cases: Id of each prompt, in the order of the keys.
    """

    keys: Keys
    cases: tuple[str, ...] = ()

    def every_key(self) -> list[float]:
        """All request keys."""
        return [key for arm in self.keys.values() for trials in arm for key in trials]


def sampled_trials(
    requests: Requests, phase: str, *, only: Collection[str] | None = None
) -> Trials | None:
    """Trials of the prompts that both arms answered at least twice.

    At most ``MOST_PROMPTS`` prompts, evenly chosen, and ``MOST_TRIALS`` of each; of
    the cases in ``only``, or of all. ``None`` without repeated answers: one answer
    each tells nothing of a distribution.
    """
    case, key = requests.label("case_id"), requests.number("request_key")
    trial = requests.number("trial").values
    wanted = [only is None or name in only for name in case.names]
    good = requests.served() & requests.at(phase=phase) & (case.codes >= 0)
    good &= np.array([*wanted, False])[case.codes]
    by_arm: dict[str, dict[int, list[float]]] = {}
    for arm in ("baseline", "candidate", "control"):
        rows = np.flatnonzero(good & requests.at(arm=arm))
        rows = rows[np.lexsort((trial[rows], case.codes[rows]))]
        found: dict[int, list[float]] = {}
        for code, each in zip(
            case.codes[rows].tolist(), key.values[rows].tolist(), strict=True
        ):
            found.setdefault(code, []).append(each)
        by_arm[arm] = found
    both = [
        code
        for code, trials in sorted(by_arm["baseline"].items())
        if min(len(trials), len(by_arm["candidate"].get(code, ()))) >= FEWEST_TRIALS
    ]
    if not both:
        return None
    step = -(-len(both) // MOST_PROMPTS)
    shown = both[::step]
    return Trials(
        {
            arm: [found.get(code, [])[:MOST_TRIALS] for code in shown]
            for arm, found in by_arm.items()
        },
        tuple(case.names[code] for code in shown),
    )


def sampled_rows(
    trials: Trials, texts: Mapping[float, AnswerText], *, seed: int, alpha: float = 0.05
) -> tuple[Row, ...]:
    """Rows (test, p_value, control_p_value, prompts, answers, power).

    Three looks at the same answers, their p-values after Holm: the texts position by
    position, the first word, and the length. ``power`` says what they see of a fault
    that was put into the baseline's own answers.
    """
    answers = {
        arm: [[texts[k].whole for k in each if k in texts] for each in prompts]
        for arm, prompts in trials.keys.items()
    }
    seen = _tests(answers["baseline"], answers["candidate"], seed)
    floor = _tests(answers["baseline"], answers["control"], seed)
    power = _power(answers["baseline"], seed, alpha)
    return tuple(
        {
            "test": name,
            "p_value": p,
            "control_p_value": q,
            "prompts": seen[name].prompts,
            "answers": seen[name].answers,
            "power": power[name],
        }
        for name, p, q in zip(seen, _adjusted(seen), _adjusted(floor), strict=True)
    )


def _power(
    baseline: Sequence[Sequence[str]], seed: int, alpha: float
) -> dict[str, str | None]:
    """What each test sees when a share of the answers is that of another prompt.

    Half of the baseline's own answers stand for the baseline, the other half for a
    candidate with that fault: half the answers of the real test, so that the real
    power is at least this.
    """
    rng = np.random.default_rng(seed)
    prompts = [list(each) for each in baseline if len(each) >= 4][:POWER_PROMPTS]
    if len(prompts) < 2:
        return dict.fromkeys(TESTS)
    seen = dict.fromkeys(TESTS, 0)
    for run in range(POWER_RUNS):
        mine, theirs = [], []
        for at, each in enumerate(prompts):
            order = rng.permutation(len(each))
            half = len(each) // 2
            mine.append([each[i] for i in order[:half]])
            foreign = prompts[(at + 1) % len(prompts)]
            theirs.append(
                [
                    foreign[int(rng.integers(len(foreign)))]
                    if rng.random() < POWER_SHARE
                    else each[i]
                    for i in order[half:]
                ]
            )
        found = _tests(mine, theirs, seed + run, permutations=POWER_PERMUTATIONS)
        for name, p in zip(found, _adjusted(found), strict=True):
            seen[name] += p is not None and p <= alpha
    return {
        name: f"sees {POWER_SHARE:.0%} of answers exchanged in "
        f"{count / POWER_RUNS:.0%} of simulated runs over {len(prompts)} prompts"
        for name, count in seen.items()
    }


def _tests(
    baseline: Sequence[Sequence[str]],
    other: Sequence[Sequence[str]],
    seed: int,
    *,
    permutations: int = 1000,
) -> dict[str, TwoSample]:
    def mapped(arm: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[" ".join(text.split()[:1]) for text in each] for each in arm]

    def lengths(arm: Sequence[Sequence[str]]) -> list[list[float]]:
        return [[float(len(text)) for text in each] for each in arm]

    return {
        "distribution": mmd_test(baseline, other, permutations=permutations, seed=seed),
        "first_token": categorical_test(
            mapped(baseline), mapped(other), permutations=permutations, seed=seed
        ),
        "length": energy_test(
            lengths(baseline), lengths(other), permutations=permutations, seed=seed
        ),
    }


def _adjusted(tests: Mapping[str, TwoSample]) -> list[float | None]:
    values = [test.p_value for test in tests.values()]
    known = [p for p in values if p is not None]
    if len(known) < len(values):
        return list(values)
    adjusted: list[float | None] = holm(known).tolist()
    return adjusted
