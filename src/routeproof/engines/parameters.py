"""The kinds of request a workload sends, so that each can be tried on both routes.

The same request can be valid on one route and refused on the other: vLLM answers
``min_p`` with ``logit_bias`` on a plain route and refuses it under speculation.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from routeproof.proof.workload import SamplingSpec
from routeproof.workloads.case import Case

PROMPT = "Once upon a time"
"""What a completion is tried with."""

OURS = frozenset({"max_tokens", "messages", "model", "prompt", "stream"})
"""Fields that every request has; the probe sets its own."""


def parameter_sets(
    cases: Iterable[Case], sampling: SamplingSpec, *, most: int = 24
) -> dict[str, dict[str, Any]]:
    """One example of every combination of request fields that the cases use.

    Args:
        cases: The workload; its parameters win over the sampling.
        sampling: Sent with every request.
        most: Combinations returned; those of the most cases come first.

    Returns:
        ``params:<field>+<field>`` to the fields, for
        `capabilities.probe_capabilities`; those of completions carry a ``prompt``.
    """
    common = {
        key: value
        for key, value in msgspec.to_builtins(sampling).items()
        if value is not None and key not in OURS
    }
    examples: dict[str, dict[str, Any]] = {}
    counted: dict[str, int] = {}
    for case in cases:
        fields = {
            **common,
            **{k: v for k, v in case.parameters.items() if k not in OURS},
        }
        name = "params:" + "+".join(sorted(_named(k, v) for k, v in fields.items()))
        if case.prompt is not None:
            # Completions and chat take other values for fields of the same name.
            name, fields = f"{name} (completions)", {**fields, "prompt": PROMPT}
        examples.setdefault(name, fields)
        counted[name] = counted.get(name, 0) + 1
    ranked = sorted(counted, key=lambda name: (-counted[name], name))
    return {name: examples[name] for name in ranked[:most]}


def _named(key: str, value: Any) -> str:
    """A field, with the kind of response format, which engines treat apart."""
    if key == "response_format" and isinstance(value, dict):
        return f"{key}={value.get('type')}"
    return key
