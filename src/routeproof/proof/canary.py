"""The ``canary:`` block: the short form people write, and room for the long one."""

import re

from routeproof.errors import ConfigError
from routeproof.proof.route import _Strict


class CanarySpec(_Strict, frozen=True, kw_only=True):
    """Live comparison of two named routes behind the gateway.

    The first six keys are the short form and are kept as text; the rest is optional
    and says the same things exactly.

    Attributes:
        candidate, baseline: Names of the two routes as shown to people.
        online_sample: Share of traffic compared online: ``5%`` or ``0.05``.
        quality_gate, perf_gate, rollback_if: The conditions in words.
        listen, admin: Addresses, ``host:port`` or ``unix:/path``.
        routes: Route name to endpoint URL.
        split: Route name to share of traffic.
        scorers: Names of online scorers.
        tolerances: Scorer or metric name to the loss allowed.
        steps: Shares of traffic the candidate climbs through.
        deadlines: Name of a step of the protocol to its deadline in seconds.
        lease_s: Seconds a candidate stays on without being renewed.
        state: Path of the state store.
    """

    candidate: str
    baseline: str
    online_sample: str | float = "5%"
    quality_gate: str | None = None
    perf_gate: str | None = None
    rollback_if: str | None = None
    listen: str | None = None
    admin: str | None = None
    routes: dict[str, str] = {}
    split: dict[str, float] = {}
    scorers: tuple[str, ...] = ()
    tolerances: dict[str, float] = {}
    steps: tuple[float, ...] = ()
    deadlines: dict[str, float] = {}
    lease_s: float | None = None
    state: str | None = None


def sample_share(text: str | float) -> float:
    """A share in [0, 1] from ``5%`` or ``0.05``.

    Raises:
        ConfigError: It is neither, or outside [0, 1].

    Example:
        >>> sample_share("25%")
        0.25
    """
    share = float(text) if isinstance(text, (int, float)) else _from_text(text)
    if not 0.0 <= share <= 1.0:
        raise ConfigError(
            f"a share must lie between 0 and 100 %, got {text}",
            key="canary.online_sample",
            hint="write `5%` or `0.05`",
        )
    return share


def _from_text(text: str) -> float:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)\s*", text)
    if match is None:
        raise ConfigError(
            f"`{text}` is not a share",
            key="canary.online_sample",
            hint="write `5%` or `0.05`",
        )
    number = float(match[1])
    return number / 100.0 if match[2] else number
