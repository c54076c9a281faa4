"""How many tokens are drafted, and how likely each is to be accepted."""

from routeproof.simulator import draws
from routeproof.simulator.defects import EngineDefects
from routeproof.simulator.moment import Moment, holds
from routeproof.simulator.route import Speculation
from routeproof.simulator.sequence import Sequence

REPETITION_ACCEPTANCE = 0.985
"""A loop is easy to guess: its drafts are nearly always right."""


def acceptance(
    spec: Speculation, wrong: EngineDefects, sequence: Sequence, moment: Moment
) -> tuple[float, ...]:
    """Chance of each draft position, given that all before it were accepted."""
    if wrong.synthetic_accepted is not None:
        return _synthetic(wrong.synthetic_accepted, spec.draft_tokens)
    if sequence.script is not None and sequence.script.repetitive:
        return (REPETITION_ACCEPTANCE,) * spec.draft_tokens
    factor = spec.by_class.get(sequence.class_, 1.0)
    own = draws.unit("acceptance", sequence.ask.key)
    factor *= 1.0 + spec.spread * (2.0 * own - 1.0)
    if spec.half_context_tokens:
        factor *= 0.5 ** (sequence.ask.prompt_tokens / spec.half_context_tokens)
    if holds(wrong.acceptance_when, sequence.ask, sequence.class_, moment):
        factor *= wrong.acceptance_factor
    factor *= max(1.0 - wrong.acceptance_decay_per_s * moment.uptime_s, 0.0)
    curve = spec.acceptance
    last = len(curve) - 1
    return tuple(
        min(curve[min(i, last)] * factor, 1.0) for i in range(spec.draft_tokens)
    )


def _synthetic(accepted: float, draft_tokens: int) -> tuple[float, ...]:
    """Chances that bring ``accepted`` drafts in nearly every pass."""
    whole = int(accepted)
    part = accepted - whole
    return tuple(
        1.0 if i < whole else part if i == whole else 0.0 for i in range(draft_tokens)
    )
