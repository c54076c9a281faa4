"""Faults by name: where each was seen, how strong it can be, what it breaks."""

from collections.abc import Callable
from dataclasses import dataclass

from routeproof.errors import ConfigError
from routeproof.simulator.defects import SOUND, Defects
from routeproof.simulator.route import SimulatedRoute

Apply = Callable[[Defects, float], Defects]


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the table."""

    name: str
    family: str
    reference: str
    low: float
    usual: float
    high: float
    what: str
    apply: Apply


FAULTS: dict[str, Fault] = {}


def defects_of(route: SimulatedRoute) -> Defects:
    """The settings that a route's faults amount to.

    Raises:
        ConfigError: An unknown fault, or a strength outside its range.
    """
    defects = SOUND
    for name, strength in route.faults.items():
        fault = FAULTS.get(name)
        if fault is None:
            raise ConfigError(f"no such fault: `{name}`")
        defects = fault.apply(defects, strength)
    return defects
