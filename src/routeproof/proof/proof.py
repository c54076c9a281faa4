"""The whole of a proof file."""

from routeproof.proof.canary import CanarySpec
from routeproof.proof.policy import (
    MemorySpec,
    PerformanceSpec,
    PolicySpec,
    QualityGateSpec,
    RollbackSpec,
)
from routeproof.proof.route import RouteSpec, _Strict
from routeproof.proof.workload import WorkloadSpec


class Proof(_Strict, frozen=True, kw_only=True):
    """One proof: two routes, a workload, tolerances, limits, the way back."""

    baseline: RouteSpec
    candidate: RouteSpec
    workload: WorkloadSpec = WorkloadSpec()
    quality: tuple[QualityGateSpec, ...] = ()
    performance: PerformanceSpec = PerformanceSpec()
    memory: MemorySpec = MemorySpec()
    policy: PolicySpec = PolicySpec()
    rollback: RollbackSpec = RollbackSpec()
    canary: CanarySpec | None = None
