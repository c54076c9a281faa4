"""Sampled answers of both arms: are they drawn from one distribution?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeproof.gates.facts import Row
from routeproof.jobs.answer_texts import AnswerText
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

Keys = dict[str, list[list[float]]]
"""By arm: request keys of the trials of each prompt, prompts in the same order."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Which sampled answers are compared, by request key."""

    keys: Keys

    def every_key(self) -> list[float]:
        """All request keys."""
        return [key for arm in self.keys.values() for trials in arm for key in trials]


def sampled_trials(requests: Requests, phase: str) -> Trials | None:
    """Trials of the prompts that both arms answered at least twice.

    At most ``MOST_PROMPTS`` prompts, evenly chosen, and ``MOST_TRIALS`` of each.
    ``None`` without repeated answers: one answer each tells nothing of a distribution.
    """
    case, key = requests.label("case_id"), requests.number("request_key")
    trial = requests.number("trial").values
    good = requests.served() & requests.at(phase=phase) & (case.codes >= 0)
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
        }
    )


def sampled_rows(
    trials: Trials, texts: Mapping[float, AnswerText], *, seed: int
) -> tuple[Row, ...]:
    """Rows (test, p_value, control_p_value, prompts, answers).

    Three looks at the same answers, their p-values after Holm: the texts position by
    position, the first word, and the length.
    """
    answers = {
        arm: [[texts[k].whole for k in each if k in texts] for each in prompts]
        for arm, prompts in trials.keys.items()
    }
    seen = _tests(answers["baseline"], answers["candidate"], seed)
    floor = _tests(answers["baseline"], answers["control"], seed)
    return tuple(
        {
            "test": name,
            "p_value": p,
            "control_p_value": q,
            "prompts": seen[name].prompts,
            "answers": seen[name].answers,
        }
        for name, p, q in zip(seen, _adjusted(seen), _adjusted(floor), strict=True)
    )


def _tests(
    baseline: Sequence[Sequence[str]], other: Sequence[Sequence[str]], seed: int
) -> dict[str, TwoSample]:
    def mapped(arm: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[" ".join(text.split()[:1]) for text in each] for each in arm]

    def lengths(arm: Sequence[Sequence[str]]) -> list[list[float]]:
        return [[float(len(text)) for text in each] for each in arm]

    return {
        "distribution": mmd_test(baseline, other, seed=seed),
        "first_token": categorical_test(mapped(baseline), mapped(other), seed=seed),
        "length": energy_test(lengths(baseline), lengths(other), seed=seed),
    }


def _adjusted(tests: Mapping[str, TwoSample]) -> list[float | None]:
    values = [test.p_value for test in tests.values()]
    known = [p for p in values if p is not None]
    if len(known) < len(values):
        return list(values)
    adjusted: list[float | None] = holm(known).tolist()
    return adjusted
