"""Faults by name: where each was seen, how strong it can be, what it breaks."""

from routeproof.simulator.faults.fault import Fault
from routeproof.simulator.faults.table import FAULTS, defects_of, fault, parse_fault

__all__ = ["FAULTS", "Fault", "defects_of", "fault", "parse_fault"]
