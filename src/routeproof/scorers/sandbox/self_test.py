"""Which tier holds here: tried, not assumed."""

import platform
from dataclasses import dataclass
from functools import cache

from routeproof.errors import ConfigError
from routeproof.scorers.sandbox.pool import Job, Pool
from routeproof.scorers.sandbox.probes import CHEATS, HARMLESS, PROBES, TESTS
from routeproof.scorers.sandbox.survey import can_throw_away, possible_tiers
from routeproof.scorers.sandbox.tiers import STRONG, TIERS, Limits, Tier

LIMITS = Limits(wall_s=5.0)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What the probes found at a tier.

    Attributes:
        held: Attempts that were stopped.
        open: Attempts that were not, with what they got.
        skipped: Attempts not made, because no throw-away namespace could be had.
    """

    tier: Tier
    held: tuple[str, ...]
    open: dict[str, str]
    skipped: tuple[str, ...]

    @property
    def is_holding(self) -> bool:
        """True when nothing that was tried got through."""
        return bool(self.held) and not self.open


@cache
def self_test(tier: Tier) -> SelfTest:
    """Try every probe and cheat at a tier, inside a throw-away namespace.

    Once per process and tier; takes about a second.
    """
    is_apart = can_throw_away()
    names = [name for name in PROBES if is_apart or name in HARMLESS]
    jobs = [Job(PROBES[name], TESTS, ("probe",), limits=LIMITS) for name in names]
    cheats = [
        Job(source, TESTS, ("probe",), limits=LIMITS) for source in CHEATS.values()
    ]
    with Pool(tier, workers=2, is_apart=is_apart) as pool:
        ran = pool.run([*jobs, *cheats])
    held, found = [], {}
    for name, one in zip(names, ran[: len(names)], strict=True):
        if one.outcome == "passed":
            held.append(name)
        else:
            found[name] = f"{one.outcome}: {one.detail}"
    for name, one in zip(CHEATS, ran[len(names) :], strict=True):
        if one.outcome in ("passed", "infra", "not_confined", "test_error"):
            found[name] = f"{one.outcome}: {one.detail}"
        else:
            held.append(name)
    skipped = tuple(name for name in PROBES if name not in names)
    return SelfTest(tier, tuple(held), found, skipped)


def choose_tier(asked: Tier | None = None) -> SelfTest:
    """The strongest tier that holds here, or the one asked for.

    Args:
        asked: ``T1`` and ``T0`` let some attempts through and are never chosen unless
            asked for by name.

    Raises:
        ConfigError: This system cannot run untrusted code safely, or the tier asked
            for is not to be had.
    """
    possible = possible_tiers()
    if not possible:
        raise ConfigError(
            f"scoring code by running it needs Linux, this is {platform.system()}",
            hint="score the run on a Linux machine or in a Linux container: "
            "`routeproof judge` needs the run folder alone",
        )
    if asked is not None:
        if asked not in possible:
            raise ConfigError(
                f"sandbox tier {asked} is not possible here, only {', '.join(possible)}"
            )
        return self_test(asked)
    tried = [self_test(tier) for tier in TIERS if tier in STRONG and tier in possible]
    for found in tried:
        if found.is_holding:
            return found
    gaps = "; ".join(f"{one.tier}: {_gaps(one)}" for one in tried) or "no Landlock"
    raise ConfigError(
        f"no sandbox tier holds untrusted code here ({gaps})",
        hint="use a kernel from 5.13 with Landlock and seccomp, or ask for a weaker "
        "tier by name, which lets programs reach the network and readable files",
    )


def _gaps(found: SelfTest) -> str:
    return ", ".join(f"{name} ({why})" for name, why in found.open.items())
