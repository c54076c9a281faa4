"""All faults in one table, and their application to a route."""

from routeproof.errors import ConfigError
from routeproof.simulator.defects import SOUND, Defects
from routeproof.simulator.faults.acceptance import ACCEPTANCE
from routeproof.simulator.faults.answers import ANSWERS
from routeproof.simulator.faults.exactness import EXACTNESS
from routeproof.simulator.faults.fault import Fault
from routeproof.simulator.faults.identity import IDENTITY
from routeproof.simulator.faults.speed import SPEED
from routeproof.simulator.faults.stream import ODDITIES, STREAM
from routeproof.simulator.faults.structured import STRUCTURED
from routeproof.simulator.route import SimulatedRoute

FAULTS: dict[str, Fault] = {
    row.name: row
    for family in (
        EXACTNESS,
        ANSWERS,
        STRUCTURED,
        STREAM,
        ACCEPTANCE,
        SPEED,
        IDENTITY,
        ODDITIES,
    )
    for row in family
}


def fault(name: str) -> Fault:
    """A fault by its name.

    Raises:
        ConfigError: Unknown; names a few that are alike.
    """
    found = FAULTS.get(name)
    if found is None:
        near = [
            known for known in FAULTS if set(name.split("_")) & set(known.split("_"))
        ]
        hint = f"did you mean {', '.join(near[:4])}?" if near else None
        raise ConfigError(
            f"there is no fault named `{name}`",
            hint=hint or "`routeproof simulate --list-faults` shows all of them",
        )
    return found


def parse_fault(text: str) -> tuple[str, float]:
    """``NAME`` or ``NAME:STRENGTH`` to a name and a strength.

    Raises:
        ConfigError: An unknown name, or a strength that is no number or out of range.
    """
    name, _, given = text.partition(":")
    row = fault(name)
    if not given:
        return name, row.usual
    try:
        strength = float(given)
    except ValueError:
        raise ConfigError(
            f"the strength of `{name}` must be a number: `{given}`"
        ) from None
    if not 0.0 <= strength <= 1e12:
        raise ConfigError(f"the strength of `{name}` is out of range: {given}")
    return name, strength


def defects_of(route: SimulatedRoute) -> Defects:
    """The settings that a route's faults amount to, in the order they are given.

    Raises:
        ConfigError: An unknown fault.
    """
    defects = SOUND
    for name, strength in route.faults.items():
        defects = fault(name).apply(defects, strength)
    return defects
