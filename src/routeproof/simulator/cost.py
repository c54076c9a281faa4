"""How long one pass takes: a roofline with an attention term."""

from dataclasses import dataclass

from routeproof.simulator.defects import EngineDefects
from routeproof.simulator.route import Speculation, Timing


@dataclass(frozen=True, slots=True)
class Load:
    """What one pass computes.

    Attributes:
        decoding: Sequences that get their next tokens.
        context: Tokens those sequences attend to, summed.
        prefill: Prompt tokens computed beside them.
        draft: Draft tokens to verify for each decoding sequence.
        running: Sequences that hold a slot, decoding or not.
    """

    decoding: int
    context: int
    prefill: int
    draft: int
    running: int


def pass_s(
    load: Load, timing: Timing, spec: Speculation | None, wrong: EngineDefects
) -> float:
    """Seconds of one pass, without jitter and pauses.

    ``max(weights, tokens * token) + context * context_token + decoding * sequence``,
    plus the drafter's passes: one for each draft token of a chain, one for a block.
    """
    verify = load.decoding * load.draft * wrong.verify_factor
    tokens = load.prefill * wrong.prefill_factor + load.decoding + verify
    step = max(timing.weights_s, tokens * timing.token_s)
    step += load.context * timing.context_token_s
    step += load.decoding * timing.sequence_s
    if spec is not None and load.draft and load.decoding:
        step += spec.draft_step_s * (load.draft if spec.shape == "chain" else 1)
    return step * wrong.step_factor if load.running >= wrong.step_running_min else step
