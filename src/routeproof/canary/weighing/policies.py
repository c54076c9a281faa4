"""Which signals judge a canary, and how: from the block to one policy each.

Three kinds. *Live* signals compare the answers of candidate and control as they come.
*Asked* signals are the same with a second opinion: a judge, an embedding, the baseline
itself. *Shadow* signals compare the two arms' answers to one and the same prompt.
"""

from collections.abc import Mapping
from pathlib import Path

from routeproof.canary.samples.signals import SIGNALS
from routeproof.canary.weighing.evidence import SignalPolicy
from routeproof.errors import ConfigError
from routeproof.proof.canary import CanarySpec
from routeproof.proof.nearest import nearest

TOLERANCE = 0.02
PREFERENCE_TOLERANCE = 0.1
"""On the scale from -1 (every pair goes to the control) to 1."""

SHADOW_WEIGHT = 0.5
"""Of the alpha budget, beside 1 for a live signal: pairs need less evidence."""

NOT_REQUIRED = frozenset(
    {"refusal", "script_switch", "truncated", "invalid_structure", "invalid_tool_call"}
)
"""Signals that can roll back but need not PASS before the canary widens, unless a
tolerance is written for them: style as often as harm, or traffic that may not have
such requests at all and would then hold for ever."""

COMPLAINT = "complaint"
TIMED = {"slow_first_token": "time_to_first_token_s", "slow": "request_latency_s"}

ASKED: dict[str, str] = {
    "off_topic": "a judge finds the answer beside the request's point",
    "unrelated": "request and answer lie further apart than the control's do",
    "unlikely": "the baseline finds the answer less likely than the control's",
}
"""Signals that need somebody to be asked. The last two are crude: they are shown, and
decide only when a tolerance is written for them."""

CRUDE = frozenset({"unrelated", "unlikely"})

PAIRED: tuple[str, ...] = (
    "error",
    "empty",
    "truncated",
    "degenerate",
    "invalid_structure",
    "refusal",
    "script_switch",
)
"""Live signals that are compared inside a shadow pair as well. Times are not: a replay
runs when there is little to do, its twin ran when somebody waited."""

SHADOW = "shadow."
PREFERENCE = "shadow.preference"
SHADOW_OFF_TOPIC = "shadow.off_topic"
SHADOWED: tuple[str, ...] = (
    *(SHADOW + name for name in PAIRED),
    SHADOW_OFF_TOPIC,
    PREFERENCE,
)

KNOWN: tuple[str, ...] = (*SIGNALS, COMPLAINT, *ASKED, *SHADOWED)


def policies(
    spec: CanarySpec, slo: Mapping[str, float], path: Path
) -> dict[str, SignalPolicy]:
    """The policy of every signal that judges this canary.

    Args:
        spec: The block.
        slo: Limits in seconds that the proof names.
        path: Of the file, for errors.

    Raises:
        ConfigError: A name is no signal, or a signal was asked for whose source is
            not configured: a gate that could never speak is refused, never skipped.
    """
    for name in (*spec.scorers, *spec.tolerances):
        key = "canary.scorers" if name in spec.scorers else "canary.tolerances"
        if name not in KNOWN:
            near = nearest(name, KNOWN)
            raise ConfigError(
                f"`{name}` is no signal",
                path=path,
                key=key,
                hint=f"did you mean `{near}`?"
                if near
                else f"known: {', '.join(KNOWN)}",
            )
        lack = _lacks(name, spec, slo)
        if lack is not None:
            raise ConfigError(
                f"the signal `{name}` needs {lack}", path=path, key=key, hint=_HINT
            )
    names = spec.scorers or [n for n in KNOWN if _lacks(n, spec, slo) is None]
    return {name: _policy(name, spec) for name in names}


_HINT = "configure it, or leave the signal out"


def _lacks(name: str, spec: CanarySpec, slo: Mapping[str, float]) -> str | None:
    """What a signal needs and has not got; ``None`` when it can speak."""
    graders, lacks = spec.graders, []
    if name in TIMED and TIMED[name] not in slo:
        lacks.append(f"an SLO for {TIMED[name]}")
    if name.startswith(SHADOW) and not spec.privacy.replay:
        lacks.append("`privacy: {replay: true}`")
    if name in ("off_topic", SHADOW_OFF_TOPIC, PREFERENCE) and graders.judge is None:
        lacks.append("`graders: {judge: ...}`")
    if name == "unrelated" and graders.embeddings is None:
        lacks.append("`graders: {embeddings: ...}`")
    if name == "unlikely" and not graders.likelihood:
        lacks.append("`graders: {likelihood: true}`")
    return " and ".join(lacks) or None


def _policy(name: str, spec: CanarySpec) -> SignalPolicy:
    is_written = name in spec.tolerances
    is_paired = name.startswith(SHADOW)
    plain = PREFERENCE_TOLERANCE if name == PREFERENCE else TOLERANCE
    is_spared = name in NOT_REQUIRED or name == COMPLAINT or name in ASKED
    return SignalPolicy(
        tolerance=spec.tolerances.get(name, plain),
        weight=SHADOW_WEIGHT if is_paired else 1.0,
        is_required=is_written or not (is_spared or is_paired),
        is_paired=is_paired,
        is_advisory=name in CRUDE and not is_written,
    )
