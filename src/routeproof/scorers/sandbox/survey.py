"""Which tiers this machine has the parts for."""

import json
import subprocess
import sys
from functools import cache

from routeproof.scorers.sandbox.pool import cell_command
from routeproof.scorers.sandbox.tiers import Tier

_ASK = (
    "import json; from routeproof.scorers.sandbox.tiers import survey; "
    "print(json.dumps(survey()))"
)


@cache
def parts() -> dict[str, bool]:
    """What ``tiers.survey`` finds, asked in a process of its own; once per process."""
    asked = subprocess.run(
        cell_command(_ASK), capture_output=True, env={}, cwd="/", timeout=60
    )
    try:
        found = json.loads(asked.stdout)
    except ValueError:
        return {}
    return {str(name): bool(has) for name, has in found.items()}


def possible_tiers() -> tuple[Tier, ...]:
    """Tiers whose parts this machine has, strongest first.

    Whether they hold is the self-test's matter. Empty on other systems than Linux.
    """
    if sys.platform != "linux":
        return ()
    has = parts()
    found: list[Tier] = ["T0"]
    if has.get("root"):
        found.insert(0, "T1")
    if has.get("filters"):
        found.insert(0, "T2")
        if has.get("namespaces"):
            found.insert(0, "T3")
    return tuple(found)


def can_throw_away() -> bool:
    """True when hostile probes can be kept in a namespace that ends with them."""
    return sys.platform == "linux" and parts().get("namespaces", False)
