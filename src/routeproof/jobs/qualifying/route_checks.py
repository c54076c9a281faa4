"""What two standing routes accept, how they tokenize, and whether they are locked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from routeproof.engines.alignment import Asked, tokenizers_differ
from routeproof.engines.capabilities import (
    FALLBACK_FEATURES,
    FEATURES,
    Capability,
    needs_fallback,
    probe_capabilities,
    refused_by_one,
    sendable,
)
from routeproof.engines.parameters import parameter_sets
from routeproof.engines.probe import metrics_page
from routeproof.jobs.qualifying.stand_up import Routes, Standing
from routeproof.proof.workload import SamplingSpec
from routeproof.routes.alignment import TokenDifference
from routeproof.routes.lock import LockProblem, check_lock
from routeproof.workloads.case import Case

FEATURE_OF = {
    "frequency_penalty": "penalties",
    "presence_penalty": "penalties",
    "choices": "several_choices",
}
"""Probes of `lossless_probe` that ask for a feature of another name."""


class RouteChecks(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Found by asking both routes a few small things before a run.

    Attributes:
        baseline, candidate: What came of each feature, and of each combination of
            request fields that the workload sends (``params:...``).
        refused: Features one route accepts and the other does not, with which and
            why. Those named ``params:...`` are in the workload: its cases would be
            answered by one route only.
        fallback: Features that must be routed around the candidate in production;
            ``None`` when they were not tried.
        token_differences: Probe texts the two tokenize differently; ``None`` when an
            engine cannot be asked.
        lock: How the pair differs from the locked one.
        unknown_series: By arm, names about speculation on its metrics page that no
            table knows: what is behind them is unavailable, and not 0.
    """

    baseline: dict[str, Capability] = {}
    candidate: dict[str, Capability] = {}
    refused: dict[str, str] = {}
    fallback: tuple[str, ...] | None = None
    token_differences: tuple[TokenDifference, ...] | None = None
    lock: tuple[LockProblem, ...] = ()
    unknown_series: dict[str, tuple[str, ...]] = {}

    def sendable(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Those of an adapter's request fields that both routes accept."""
        return sendable(fields, self.baseline, self.candidate)

    def ending(self, arm: str) -> tuple[str, ...]:
        """Features that end the engine of an arm."""
        tried = self.baseline if arm == "baseline" else self.candidate
        return tuple(name for name, each in tried.items() if each.state == "ends")

    def with_ending(self, probes: Sequence[str]) -> "RouteChecks":
        """The same once probes have ended the candidate's engine.

        A feature that the canary can route by goes around the candidate as well.
        """
        names = [FEATURE_OF.get(probe, probe) for probe in probes]
        ends = Capability(state="ends", note="the engine ends at a probe with it")
        around = dict.fromkeys(
            (*(self.fallback or ()), *(n for n in names if n in FALLBACK_FEATURES))
        )
        return msgspec.structs.replace(
            self,
            candidate={**self.candidate, **dict.fromkeys(names, ends)},
            fallback=tuple(around),
        )

    def unfair_cases(self) -> dict[str, str]:
        """Combinations of the workload that only one route answers."""
        return {k: v for k, v in self.refused.items() if k.startswith("params:")}


async def check_routes(
    routes: Routes,
    cases: Sequence[Case],
    sampling: SamplingSpec,
    *,
    lock_path: Path | None = None,
    has_features: bool = True,
) -> RouteChecks:
    """Ask both routes; about 25 requests of four tokens each.

    Args:
        routes: Both standing.
        cases: Whose request fields are tried.
        sampling: Sent with each.
        lock_path: The pairing lock, beside the proof file.
        has_features: Try features too that the workload does not use; an engine may
            not survive one.

    An engine launched here that does not survive a feature is started anew.

    Raises:
        ConfigError: A route does not answer a plain request, its pair was upgraded on
            one side only, or a feature ends an engine that was not launched here.
        EngineError: An engine that was started anew did not come up.
    """
    lock = () if lock_path is None else check_lock(lock_path, routes.found.candidate)
    sets = parameter_sets(cases, sampling)
    found = []
    for arm in ("baseline", "candidate"):
        standing = routes.standing(arm)
        found.append(
            await probe_capabilities(
                standing.endpoint,
                standing.model,
                engine=standing.adapter.name,
                features=FEATURES if has_features else {},
                extra=standing.adapter.request_fields(),
                more=sets,
                revive=routes.revive(arm),
            )
        )
    return RouteChecks(
        baseline=found[0],
        candidate=found[1],
        refused=refused_by_one(*found),
        fallback=needs_fallback(*found) if has_features else None,
        token_differences=await tokenizers_differ(
            _asked(routes.baseline), _asked(routes.candidate)
        ),
        lock=lock,
        unknown_series={
            arm: await _unknown_series(standing)
            for arm, standing in (
                ("baseline", routes.baseline),
                ("candidate", routes.candidate),
            )
        },
    )


async def _unknown_series(standing: Standing) -> tuple[str, ...]:
    page = await metrics_page(standing.endpoint, standing.adapter)
    return standing.adapter.counters(page or "", 0.0).unknown_names


def _asked(standing: Standing) -> Asked:
    return standing.endpoint, standing.adapter.name, standing.model
