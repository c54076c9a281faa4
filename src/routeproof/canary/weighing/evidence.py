"""The evidence on each signal: anytime-valid, stratified, with an alpha budget.

For each signal two tests run side by side over canary and control, or over the two
answers of shadow pairs: *harm* (the canary
is worse than the control by more than what is forgiven) and *safe* (a loss of the
tolerance is excluded). Both may be looked at after every answer. Harm is gathered
over the canary's whole life, and the alphas of all signals add up to the canary's
alpha: an equal candidate is rolled back by chance at most that often, ever. Safety is
shown anew at every step, since a fault may need the higher load.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log

import msgspec

from routeproof.canary.deciding.state import SignalOutcome
from routeproof.canary.samples.spool import Sample
from routeproof.canary.weighing.evidence_tests import Pairs, Rates, SignalState
from routeproof.stats.sequential import AssignmentTest

__all__ = ["Evidence", "SignalPolicy", "SignalState", "Standing"]

Trouble = tuple[SignalOutcome, str]
"""Why a signal cannot be believed now, and what it is called."""


UNITS = 100_000
"""Callers whose arm is remembered at a step; a split that is off shows long before."""


class SignalPolicy(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How one signal is judged.

    Attributes:
        tolerance: Rise of the bad share over the control's that is tolerable.
        forgiven: Rise below which harm is not alarmed about.
        weight: Share of the alpha budget, relative to the other signals.
        is_required: Whether it must PASS before the canary widens.
        minimum: Applicable answers per arm below which nothing is said.
        is_paired: Compared inside shadow pairs, not between the arms' own traffic.
        is_advisory: Shown, but it decides nothing.
    """

    tolerance: float = 0.02
    forgiven: float = 0.0
    weight: float = 1.0
    is_required: bool = True
    minimum: int = 50
    is_paired: bool = False
    is_advisory: bool = False


class Standing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one signal stands, for people and for the controller.

    Attributes:
        control_share, canary_share: Bad answers of those seen. Of pairs: how often
            each arm was the worse one. ``None`` before the first.
        step_seen: Of the smaller arm since the step was entered.
        harm_log_e, safe_log_e: Natural logs of the e-values now.
        harm_at, safe_at: Log e-values at which the question is settled.
    """

    name: str
    outcome: SignalOutcome
    reason: str
    control_share: float | None
    canary_share: float | None
    control_seen: int
    canary_seen: int
    step_seen: int
    harm_log_e: float
    safe_log_e: float
    harm_at: float
    safe_at: float
    is_required: bool
    is_paired: bool = False
    is_advisory: bool = False


def decides(standing: Standing) -> bool:
    """Whether the controller has to be told: required ones always, others of harm."""
    if standing.is_advisory:
        return False
    return standing.is_required or standing.outcome is SignalOutcome.FAIL


@dataclass(slots=True)
class Evidence:
    """All signals of one canary.

    Attributes:
        policies: The signals that are judged.
        alpha: Chance of ever rolling back a candidate that is not worse.
        canary_share: Of the samples of both arms at this step: one half, or more where
            the candidate has so much that no control of its size is left.
        per_caller: Most answers of one caller that are evidence at a step; ``None``
            for all. Answers of one caller resemble each other: without a limit one
            busy caller with odd requests can look like a fault of its arm.
        spared: Answers that were none for that reason.
    """

    policies: Mapping[str, SignalPolicy]
    alpha: float = 0.05
    canary_share: float = 0.5
    _rates: dict[str, Rates] = field(default_factory=dict, init=False)
    _pairs: dict[str, Pairs] = field(default_factory=dict, init=False)
    _ratio: AssignmentTest = field(init=False)
    per_caller: int | None = None
    spared: int = field(default=0, init=False)
    _units: Counter[str] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        for name in self.policies:
            self._begin(name, SignalState())
        self._ratio = self._split_test()

    def _split_test(self) -> AssignmentTest:
        return AssignmentTest((1 - self.canary_share, self.canary_share))

    def _begin(self, name: str, state: SignalState) -> None:
        policy = self.policies[name]
        if policy.is_paired:
            self._pairs[name] = Pairs(policy.forgiven, policy.tolerance, state)
        else:
            self._rates[name] = Rates(policy.forgiven, policy.tolerance, state)

    def take(self, sample: Sample, unit: str | None = None) -> None:
        """Take one scored sample in; those of the direct baseline are not compared.

        Args:
            sample: With its signals.
            unit: What was assigned to the arm. Each counts once for the split, however
                many requests a busy caller sends; ``None`` does not count for it.
        """
        if sample.arm == "baseline" or sample.signals is None:
            return
        if unit is not None and not self._is_counted(unit, sample.arm == "canary"):
            self.spared += 1
            return
        for name, bad in sample.signals.items():
            if bad is not None and name in self._rates:
                self.observe(name, sample.arm == "canary", bad, sample.stratum)

    def _is_counted(self, unit: str, is_canary: bool) -> bool:
        """Note an answer of a caller; false when it had its share of the evidence."""
        if unit not in self._units:
            if len(self._units) >= UNITS:
                return True
            self._ratio.update(1 if is_canary else 0)
        self._units[unit] += 1
        return self.per_caller is None or self._units[unit] <= self.per_caller

    def observe(self, name: str, is_canary: bool, bad: bool, stratum: str) -> None:
        """Take in one answer's outcome on one signal."""
        self._rates[name].observe(is_canary, bad, stratum)

    def observe_pair(self, name: str, difference: float) -> None:
        """Take in one pair: candidate minus control, from -1 (worse) to 1."""
        self._pairs[name].observe(difference)

    def enter_step(self, canary_share: float = 0.5) -> None:
        """Ask for safety and for the split anew; harm goes on."""
        self.canary_share = canary_share
        self._ratio = self._split_test()
        self._units.clear()
        for name in self.policies:
            self._tests(name).enter_step()

    def is_split_as_configured(self) -> bool:
        """False once callers do not reach canary and control as they should."""
        return self._ratio.log_e_value < -log(self.alpha / 5)

    def standings(
        self,
        *,
        stale: str | None = None,
        troubles: Mapping[str, Trouble] | None = None,
    ) -> list[Standing]:
        """Where every signal stands.

        Args:
            stale: Why nothing can be believed now, such as scores that lag behind; a
                signal that has not failed cannot pass then.
            troubles: The same for single signals.
        """
        deciding = [p for p in self.policies.values() if not p.is_advisory]
        total = sum(policy.weight for policy in deciding) or 1.0
        if stale is None and not self.is_split_as_configured():
            stale = "candidate and control are not sampled alike"
        found = []
        for name, policy in self.policies.items():
            trouble = (SignalOutcome.STALE, stale) if stale is not None else None
            trouble = trouble or (troubles or {}).get(name)
            share = 1.0 if policy.is_advisory else policy.weight / total
            found.append(self._standing(name, policy, self.alpha * share, trouble))
        return found

    def _tests(self, name: str) -> Rates | Pairs:
        return self._rates[name] if name in self._rates else self._pairs[name]

    def _standing(
        self, name: str, policy: SignalPolicy, alpha: float, trouble: Trouble | None
    ) -> Standing:
        tests = self._tests(name)
        shares = [
            b / n if n else None for b, n in zip(tests.bad, tests.seen, strict=True)
        ]
        outcome, reason = _outcome(tests, policy, (alpha, self.alpha), trouble)
        return Standing(
            name=name,
            outcome=outcome,
            reason=reason,
            control_share=shares[0],
            canary_share=shares[1],
            control_seen=tests.seen[0],
            canary_seen=tests.seen[1],
            step_seen=min(tests.step_seen),
            harm_log_e=tests.harm.log_e_value,
            safe_log_e=tests.safe.log_e_value,
            harm_at=-log(alpha),
            safe_at=-log(self.alpha),
            is_required=policy.is_required,
            is_paired=policy.is_paired,
            is_advisory=policy.is_advisory,
        )

    def state(self) -> dict[str, SignalState]:
        """What is needed to go on after a restart."""
        return {name: self._tests(name).state() for name in self.policies}

    def restore(self, signals: Mapping[str, SignalState]) -> None:
        """Go on from what was remembered; signals no longer judged are left out.

        The split is looked at anew: the callers that were counted are not remembered.
        """
        for name, state in signals.items():
            if name in self.policies:
                self._begin(name, state)
        self._ratio = self._split_test()
        self._units.clear()


def _outcome(
    tests: Rates | Pairs,
    policy: SignalPolicy,
    alphas: tuple[float, float],
    trouble: Trouble | None,
) -> tuple[SignalOutcome, str]:
    """Harm comes before every doubt: evidence once gathered is not taken back."""
    fewest, counted = min(tests.step_seen), tests.words()
    if tests.harm.p_value <= alphas[0]:
        return SignalOutcome.FAIL, f"harm shown: {counted}"
    if trouble is not None:
        return trouble
    if fewest == 0:
        return SignalOutcome.NO_DATA, f"no applicable answer in one arm ({counted})"
    if fewest < policy.minimum:
        why = f"{fewest} of {policy.minimum} answers in the smaller arm at this step"
        return SignalOutcome.INCONCLUSIVE, why
    if tests.safe.p_value <= alphas[1]:
        return SignalOutcome.PASS, (
            f"a rise of more than {policy.tolerance:.1%} is excluded: {counted}"
        )
    return SignalOutcome.INCONCLUSIVE, f"not decided yet: {counted}"
