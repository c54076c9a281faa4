"""Names of the GenAI semantic conventions, the current ones and those before.

Source: open-telemetry/semantic-conventions-genai v0.1.0 (`docs/gen-ai`), and
open-telemetry/semantic-conventions up to v1.41.1 for the legacy names. All of them are
marked as in development there, so every name in use stands in this file.

The variable ``OTEL_SEMCONV_STABILITY_OPT_IN`` chooses, as a comma-separated list:
``gen_ai_latest_experimental`` (or nothing) the current names, ``gen_ai/legacy`` the
earlier ones, ``gen_ai/dup`` both for the time of a change-over.
"""

from collections.abc import Mapping
from typing import Literal

from routeproof.errors import ConfigError

Convention = Literal["current", "legacy", "both"]
VARIABLE = "OTEL_SEMCONV_STABILITY_OPT_IN"
_CHOICES: dict[str, Convention] = {
    "gen_ai_latest_experimental": "current",
    "gen_ai/legacy": "legacy",
    "gen_ai/dup": "both",
}


def convention_of(environ: Mapping[str, str]) -> Convention:
    """Which names are sent.

    Raises:
        ConfigError: Two values that contradict each other, or one about GenAI that
            nobody knows. Values about other matters are left alone.

    Example:
        >>> convention_of({"OTEL_SEMCONV_STABILITY_OPT_IN": "http/dup,gen_ai/dup"})
        'both'
    """
    given = [part.strip() for part in environ.get(VARIABLE, "").split(",")]
    own = [part for part in given if part.startswith("gen_ai")]
    unknown = [part for part in own if part not in _CHOICES]
    chosen = {_CHOICES[part] for part in own if part in _CHOICES}
    if unknown or len(chosen) > 1:
        raise ConfigError(
            f"{VARIABLE} says `{', '.join(own)}`",
            hint=f"give one of {', '.join(_CHOICES)}",
        )
    return chosen.pop() if chosen else "current"


RENAMED: dict[str, str] = {
    "gen_ai.client.inference.duration": "gen_ai.client.operation.duration",
    "gen_ai.client.inference.time_to_first_chunk": (
        "gen_ai.client.operation.time_to_first_chunk"
    ),
    "gen_ai.client.inference.time_per_output_chunk": (
        "gen_ai.client.operation.time_per_output_chunk"
    ),
    "gen_ai.provider.name": "gen_ai.system",
    "gen_ai.usage.cache_write.input_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
"""Current to legacy; a name that is not here is the same in both."""

LEGACY_TOKENS = "gen_ai.client.token.usage"
"""One histogram with ``gen_ai.token.type`` where there are several names now."""


def spelled(name: str, convention: Convention) -> tuple[str, ...]:
    """A current name as it is to be sent: one name, or both.

    Example:
        >>> spelled("gen_ai.provider.name", "both")
        ('gen_ai.provider.name', 'gen_ai.system')
        >>> spelled("gen_ai.request.model", "both")
        ('gen_ai.request.model',)
    """
    old = RENAMED.get(name)
    if old is None or convention == "current":
        return (name,)
    return (old,) if convention == "legacy" else (name, old)


CLIENT_BOUNDS_S = tuple(0.01 * 2**k for k in range(14))
"""0.01 to 81.92 s."""

SERVER_DURATION_BOUNDS_S = CLIENT_BOUNDS_S
FIRST_TOKEN_BOUNDS_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0,
    7.5, 10.0,
)  # fmt: skip
PER_TOKEN_BOUNDS_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
)  # fmt: skip
TOKEN_BOUNDS = tuple(float(4**k) for k in range(14))
