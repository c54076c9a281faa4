"""The evidence on each signal: anytime-valid, stratified, with an alpha budget.

For each signal two tests run side by side over canary and control: *harm* (the canary
is worse than the control by more than what is forgiven) and *safe* (a loss of the
tolerance is excluded). Both may be looked at after every answer. Harm is gathered
over the canary's whole life, and the alphas of all signals add up to the canary's
alpha: an equal candidate is rolled back by chance at most that often, ever. Safety is
shown anew at every step, since a fault may need the higher load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log

import msgspec

from routeproof.canary.samples import Sample
from routeproof.canary.state import SignalOutcome
from routeproof.stats.sequential import AssignmentState, AssignmentTest
from routeproof.stats.sequential_rates import RatesState, RatesTest


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


class SignalState(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a signal has to remember across restarts.

    ``bad`` and ``seen`` count over the canary's life, ``step_seen`` since the step was
    entered; control first, canary second.
    """

    harm: RatesState = RatesState()
    safe: RatesState = RatesState()
    bad: tuple[int, int] = (0, 0)
    seen: tuple[int, int] = (0, 0)
    step_seen: tuple[int, int] = (0, 0)


class Standing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one signal stands, for people and for the controller.

    Attributes:
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


@dataclass(slots=True)
class _Tests:
    harm: RatesTest
    safe: RatesTest
    bad: list[int]
    seen: list[int]
    step_seen: list[int]


@dataclass(slots=True)
class Evidence:
    """All signals of one canary.

    Attributes:
        policies: The signals that are judged.
        alpha: Chance of ever rolling back a candidate that is not worse.
        drops_ratio_max: Most by which the arms' drop shares may differ before the
            evidence counts as stale.
    """

    policies: Mapping[str, SignalPolicy]
    alpha: float = 0.05
    drops_ratio_max: float = 0.02
    _tests: dict[str, _Tests] = field(default_factory=dict, init=False)
    _ratio: AssignmentTest = field(init=False)

    def __post_init__(self) -> None:
        for name, policy in self.policies.items():
            self._tests[name] = _tests(policy, SignalState())
        self._ratio = AssignmentTest((0.5, 0.5))

    def take(self, sample: Sample) -> None:
        """Take one scored sample in; those of the direct baseline are not compared."""
        if sample.arm == "baseline" or sample.signals is None:
            return
        self._ratio.update(1 if sample.arm == "canary" else 0)
        for name, bad in sample.signals.items():
            if bad is not None and name in self._tests:
                self.observe(name, sample.arm == "canary", bad, sample.stratum)

    def observe(self, name: str, is_canary: bool, bad: bool, stratum: str) -> None:
        """Take in one answer's outcome on one signal."""
        tests = self._tests[name]
        side = 1 if is_canary else 0
        tests.bad[side] += int(bad)
        tests.seen[side] += 1
        tests.step_seen[side] += 1
        tests.harm.update(stratum, "canary" if is_canary else "baseline", bad)
        tests.safe.update(stratum, "canary" if is_canary else "baseline", bad)

    def enter_step(self) -> None:
        """Ask for safety anew; harm goes on."""
        for name, tests in self._tests.items():
            tests.safe = RatesTest("safe", tolerance=self.policies[name].tolerance)
            tests.step_seen = [0, 0]

    def is_split_as_configured(self) -> bool:
        """False once canary and control samples are not equally many by chance."""
        return self._ratio.log_e_value < -log(self.alpha / 5)

    def standings(self, *, is_stale: bool = False) -> list[Standing]:
        """Where every signal stands.

        Args:
            is_stale: Scores lag behind or were dropped unequally; a signal that has
                not failed cannot pass then.
        """
        total = sum(policy.weight for policy in self.policies.values())
        stale = is_stale or not self.is_split_as_configured()
        return [
            self._standing(name, policy, self.alpha * policy.weight / total, stale)
            for name, policy in self.policies.items()
        ]

    def _standing(
        self, name: str, policy: SignalPolicy, alpha: float, is_stale: bool
    ) -> Standing:
        tests = self._tests[name]
        shares = [
            b / n if n else None for b, n in zip(tests.bad, tests.seen, strict=True)
        ]
        harm, safe = tests.harm, tests.safe
        outcome, reason = _outcome(tests, policy, alpha, self.alpha, is_stale)
        return Standing(
            name=name,
            outcome=outcome,
            reason=reason,
            control_share=shares[0],
            canary_share=shares[1],
            control_seen=tests.seen[0],
            canary_seen=tests.seen[1],
            step_seen=min(tests.step_seen),
            harm_log_e=harm.log_e_value,
            safe_log_e=safe.log_e_value,
            harm_at=-log(alpha),
            safe_at=-log(self.alpha),
            is_required=policy.is_required,
        )

    def state(self) -> dict[str, SignalState]:
        """What is needed to go on after a restart."""
        return {
            name: SignalState(
                harm=tests.harm.state(),
                safe=tests.safe.state(),
                bad=(tests.bad[0], tests.bad[1]),
                seen=(tests.seen[0], tests.seen[1]),
                step_seen=(tests.step_seen[0], tests.step_seen[1]),
            )
            for name, tests in self._tests.items()
        }

    def ratio_state(self) -> AssignmentState:
        """The same of the split check."""
        return self._ratio.state()

    def restore(
        self, signals: Mapping[str, SignalState], ratio: AssignmentState | None
    ) -> None:
        """Go on from what was remembered; signals no longer judged are left out."""
        for name, state in signals.items():
            if name in self.policies:
                self._tests[name] = _tests(self.policies[name], state)
        if ratio is not None:
            self._ratio = AssignmentTest((0.5, 0.5), state=ratio)


def _tests(policy: SignalPolicy, state: SignalState) -> _Tests:
    return _Tests(
        harm=RatesTest("harm", tolerance=policy.forgiven, state=state.harm),
        safe=RatesTest("safe", tolerance=policy.tolerance, state=state.safe),
        bad=list(state.bad),
        seen=list(state.seen),
        step_seen=list(state.step_seen),
    )


def _outcome(
    tests: _Tests, policy: SignalPolicy, alpha: float, alpha_safe: float, is_stale: bool
) -> tuple[SignalOutcome, str]:
    fewest = min(tests.step_seen)
    rates = (
        f"bad on {tests.bad[1]} of {tests.seen[1]} against "
        f"{tests.bad[0]} of {tests.seen[0]}"
    )
    if tests.harm.p_value <= alpha:
        return SignalOutcome.FAIL, f"harm shown: {rates}"
    if is_stale:
        return (
            SignalOutcome.STALE,
            "scores lag, were dropped unequally, or the split is off",
        )
    if fewest == 0:
        return SignalOutcome.NO_DATA, f"no applicable answer in one arm ({rates})"
    if fewest < policy.minimum:
        why = f"{fewest} of {policy.minimum} answers in the smaller arm at this step"
        return SignalOutcome.INCONCLUSIVE, why
    if tests.safe.p_value <= alpha_safe:
        return SignalOutcome.PASS, (
            f"a rise of more than {policy.tolerance:.1%} is excluded: {rates}"
        )
    return SignalOutcome.INCONCLUSIVE, f"not decided yet: {rates}"
