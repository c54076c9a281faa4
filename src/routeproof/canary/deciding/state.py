"""The state of one canary, and the pure step from one state to the next.

::

    ready ──start──▶ stepping ──all PASS, enough evidence──▶ next step ... ▶ promoted
                       │  ▲
             no verdict│  │all PASS
                       ▼  │
                     held ──deadline──▶ rolling_back (or paged, if the policy says so)
    any FAIL, or the operator ──▶ rolling_back ──observed share 0──▶ rolled_back

Every state but the three resting ones (``ready``, ``promoted``, ``rolled_back``) has a
deadline. ``rolled_back`` is final for its candidate digest; a new attempt with the
same digest needs a person who says so (``retry``).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

import msgspec

Phase = Literal[
    "ready", "stepping", "held", "paused", "rolling_back", "rolled_back", "promoted"
]
WHOLE_PPM = 1_000_000
RESTING: frozenset[str] = frozenset({"ready", "rolled_back", "promoted"})


class SignalOutcome(StrEnum):
    """What one signal says now. Only ``PASS`` on all required signals advances."""

    PASS = "pass"
    FAIL = "fail"
    NO_DATA = "no_data"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"
    STALE = "stale"


class Steps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a canary widens.

    Attributes:
        weights_ppm: Candidate weights in parts per million, strictly rising.
        minimum_scored: Scored answers per arm needed at each step before it may widen.
        step_deadline_s: Longest stay at one step, held time included.
        hold_deadline_s: Longest hold without a verdict.
        drain_deadline_s: Longest wait for the observed share to reach 0.
        at_deadline: ``rollback``, or ``page``: keep the weight and call a person.
    """

    weights_ppm: tuple[int, ...] = (10_000, 50_000, 250_000, 500_000, 1_000_000)
    minimum_scored: int = 200
    step_deadline_s: float = 86_400.0
    hold_deadline_s: float = 3_600.0
    drain_deadline_s: float = 300.0
    at_deadline: Literal["rollback", "page"] = "rollback"


class State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a canary stands. ``revision`` rises by one with every write.

    Attributes:
        weight_ppm: The candidate's weight a replica may use while its lease lasts.
        entered_s: Wall clock when this phase was entered.
        step_entered_s: Wall clock when this step was entered.
        paged: True once a person was called at a deadline.
    """

    name: str
    candidate_digest: str
    attempt: int = 1
    phase: Phase = "ready"
    step: int = 0
    weight_ppm: int = 0
    entered_s: float = 0.0
    step_entered_s: float = 0.0
    paged: bool = False
    reason: str = "not started"
    revision: int = 0


class Seen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the controller sees when it looks.

    Attributes:
        signals: Outcome of every required signal. None at all is no evidence.
        scored_canary, scored_control: Scored answers at this step.
        observed_share: Share of requests in flight or lately served by the candidate;
            ``None`` when unknown.
    """

    now_s: float
    signals: Mapping[str, SignalOutcome]
    scored_canary: int = 0
    scored_control: int = 0
    observed_share: float | None = None


Command = Literal["start", "promote", "rollback", "pause", "resume", "retry"]


def advance(state: State, seen: Seen, steps: Steps) -> State:
    """The next state after a look; the same object when nothing changes."""
    if state.phase == "rolling_back":
        return _drain(state, seen, steps)
    if state.phase in RESTING:
        return state
    failed = [n for n, s in sorted(seen.signals.items()) if s is SignalOutcome.FAIL]
    if failed:
        return _roll_back(state, seen.now_s, f"signal {failed[0]} failed")
    if state.phase == "paused":
        return _at_deadline(state, seen, steps, steps.step_deadline_s, "paused")
    if seen.now_s - state.step_entered_s >= steps.step_deadline_s:
        return _expire(state, seen.now_s, steps, "the step outlasted its deadline")
    missing = _missing(seen, steps)
    if missing is None:
        return _widen(state, seen.now_s, steps)
    if state.phase == "held":
        return _at_deadline(state, seen, steps, steps.hold_deadline_s, missing)
    if _is_gathering(seen, steps):
        return state
    return _move(state, seen.now_s, phase="held", reason=missing)


def obey(state: State, command: Command, now_s: float, steps: Steps) -> State:
    """The next state after an operator's command.

    Raises:
        ValueError: The command makes no sense in this phase; the message says why.
    """
    if command == "rollback":
        if state.phase in ("rolled_back", "rolling_back"):
            return state
        return _roll_back(state, now_s, "asked for by the operator")
    if command == "start" and state.phase == "ready":
        first = msgspec.structs.replace(state, step=-1)
        return _widen(first, now_s, steps)
    if command == "promote" and state.phase in ("stepping", "held", "paused"):
        return _widen(state, now_s, steps)
    if command == "pause" and state.phase in ("stepping", "held"):
        return _move(state, now_s, phase="paused", reason="paused by the operator")
    if command == "resume" and state.phase == "paused":
        return _move(state, now_s, phase="held", reason="resumed by the operator")
    if command == "retry" and state.phase == "rolled_back":
        return new_attempt(state, state.candidate_digest, now_s, override=True)
    raise ValueError(f"cannot {command} a canary that is {state.phase}: {state.reason}")


def new_attempt(
    state: State, candidate_digest: str, now_s: float, *, override: bool
) -> State:
    """A fresh start after a rollback.

    Raises:
        ValueError: The canary still runs, or the same digest was rolled back and
            ``override`` is not given.
    """
    if state.phase not in RESTING:
        raise ValueError(f"the canary is {state.phase}; roll it back first")
    same = state.candidate_digest == candidate_digest
    if state.phase == "rolled_back" and same and not override:
        raise ValueError(
            f"candidate {candidate_digest[:12]} was rolled back: {state.reason}"
        )
    return State(
        name=state.name,
        candidate_digest=candidate_digest,
        attempt=state.attempt + 1,
        entered_s=now_s,
        step_entered_s=now_s,
        reason="new attempt",
        revision=state.revision + 1,
    )


def _missing(seen: Seen, steps: Steps) -> str | None:
    """Why this look cannot widen the canary; ``None`` when it can."""
    if not seen.signals:
        return "no required signal reported"
    for name, outcome in sorted(seen.signals.items()):
        if outcome is not SignalOutcome.PASS:
            return f"signal {name} is {outcome.value}"
    fewest = min(seen.scored_canary, seen.scored_control)
    if fewest < steps.minimum_scored:
        return f"{fewest} of {steps.minimum_scored} scored answers in the smaller arm"
    return None


def _is_gathering(seen: Seen, steps: Steps) -> bool:
    """True while the step only lacks answers: that is no hold, the step runs on."""
    broken = {SignalOutcome.ERROR, SignalOutcome.STALE}
    fewest = min(seen.scored_canary, seen.scored_control)
    return (
        bool(seen.signals)
        and fewest < steps.minimum_scored
        and broken.isdisjoint(seen.signals.values())
    )


def _widen(state: State, now_s: float, steps: Steps) -> State:
    """The next step, or the promotion.

    The whole traffic leaves no control to compare with: entering it is the promotion,
    after which only a person takes the candidate back.
    """
    step = state.step + 1
    if step >= len(steps.weights_ppm):
        return _move(state, now_s, phase="promoted", reason="all steps passed")
    if steps.weights_ppm[step] == WHOLE_PPM:
        done = _move(state, now_s, phase="promoted", reason="all steps passed")
        return msgspec.structs.replace(done, step=step, weight_ppm=WHOLE_PPM)
    return msgspec.structs.replace(
        _move(state, now_s, phase="stepping", reason=f"step {step + 1} entered"),
        step=step,
        weight_ppm=steps.weights_ppm[step],
        step_entered_s=now_s,
        paged=False,
    )


def _at_deadline(
    state: State, seen: Seen, steps: Steps, limit_s: float, reason: str
) -> State:
    if seen.now_s - state.entered_s < limit_s:
        if reason == state.reason or state.phase == "paused":
            return state
        return msgspec.structs.replace(
            state, reason=reason, revision=state.revision + 1
        )
    return _expire(state, seen.now_s, steps, f"deadline passed: {reason}")


def _expire(state: State, now_s: float, steps: Steps, reason: str) -> State:
    if steps.at_deadline == "rollback":
        return _roll_back(state, now_s, reason)
    if state.paged:
        return state
    return msgspec.structs.replace(
        state, paged=True, reason=reason, revision=state.revision + 1
    )


def _drain(state: State, seen: Seen, steps: Steps) -> State:
    if seen.observed_share == 0.0:
        return _move(state, seen.now_s, phase="rolled_back", reason=state.reason)
    if seen.now_s - state.entered_s >= steps.drain_deadline_s:
        reason = f"{state.reason}; observed share not 0 at the drain deadline"
        return _move(state, seen.now_s, phase="rolled_back", reason=reason)
    return state


def _roll_back(state: State, now_s: float, reason: str) -> State:
    moved = _move(state, now_s, phase="rolling_back", reason=reason)
    return msgspec.structs.replace(moved, weight_ppm=0)


def _move(state: State, now_s: float, *, phase: Phase, reason: str) -> State:
    return msgspec.structs.replace(
        state, phase=phase, reason=reason, entered_s=now_s, revision=state.revision + 1
    )
