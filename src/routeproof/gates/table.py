"""The seven gates, in their order."""

from collections.abc import Callable

from routeproof.gates.acceptance import judge_acceptance
from routeproof.gates.correctness import judge_correctness
from routeproof.gates.evidence import Evidence
from routeproof.gates.inventory import judge_inventory
from routeproof.gates.latency import judge_latency
from routeproof.gates.memory_stability import judge_memory_stability
from routeproof.gates.parity import judge_parity
from routeproof.gates.result import GateName, GateResult
from routeproof.gates.rollback import judge_rollback

GATES: dict[GateName, Callable[[Evidence], GateResult]] = {
    "inventory": judge_inventory,
    "parity": judge_parity,
    "acceptance": judge_acceptance,
    "latency": judge_latency,
    "correctness": judge_correctness,
    "memory_stability": judge_memory_stability,
    "rollback": judge_rollback,
}


def judge(evidence: Evidence) -> tuple[GateResult, ...]:
    """The seven results, in the order of the table."""
    return tuple(gate(evidence) for gate in GATES.values())
