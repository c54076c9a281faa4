"""All faults in one table, and their application to a route."""

from pathlib import Path

from routeproof.errors import ConfigError
from routeproof.simulator.defects import SOUND, Defects
from routeproof.simulator.faults.fault import Fault, read
from routeproof.simulator.route import SimulatedRoute

TABLES = (
    "exactness",
    "answers",
    "structured",
    "stream",
    "acceptance",
    "speed",
    "memory",
    "stability",
    "identity",
    "oddities",
)

FAULTS: dict[str, Fault] = {
    row.name: row
    for table in TABLES
    for row in read(Path(__file__).with_name(f"{table}.toml"))
}
"""Every fault; the names of what is odd but allowed begin with a tilde."""


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
