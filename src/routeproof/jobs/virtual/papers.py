"""What a virtual run leaves beside its records: samples and the manifest."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from routeproof import __version__
from routeproof.jobs.virtual.venue import Sample
from routeproof.proof.proof import Proof
from routeproof.records.columns import Column
from routeproof.records.manifest import ClientHealth, Manifest, StageDone, Versions
from routeproof.records.record import Record
from routeproof.records.store import RunFolder
from routeproof.routes.inventory import RouteDiff
from routeproof.runs.blocks import Plan
from routeproof.runs.health import judge_client, quantile
from routeproof.workloads.fingerprint import fingerprint


@dataclass(slots=True)
class Watch:
    """The client's checks on itself, as far as they mean anything without a client."""

    delays_s: dict[str, list[float]] = field(default_factory=dict)
    firsts_s: dict[str, list[float]] = field(default_factory=dict)

    def take(self, records: Iterable[Record]) -> None:
        """Look at how late requests left."""
        for record in records:
            key, clock = record.key, record.clock
            place = f"{key.arm}/{key.phase}/{key.level}"
            if clock.dispatched_s is not None:
                late = clock.dispatched_s - clock.intended_s
                self.delays_s.setdefault(place, []).append(late)
            if record.stream.chunk_s:
                first = record.stream.chunk_s[0] - clock.intended_s
                self.firsts_s.setdefault(place, []).append(first)

    def health(self) -> ClientHealth:
        """The finding, by the limits of a real client."""
        levels = {
            place: {
                "requests": float(len(delays)),
                "dispatch_delay_p99_s": quantile(delays, 0.99),
                "first_chunk_p50_s": quantile(self.firsts_s.get(place, []), 0.5),
            }
            for place, delays in self.delays_s.items()
        }
        return judge_client(levels)


def write_samples(folder: RunFolder, samples: list[Sample]) -> None:
    """Store what was sampled of the engines."""
    if not samples:
        return
    at_s, arms, names, values = zip(*samples, strict=True)
    folder.write_telemetry(
        {
            "at_s": _known(at_s),
            "arm": np.array(arms, dtype=object),
            "name": np.array(names, dtype=object),
            "value": _known(values),
        }
    )


def _known(values: Sequence[float]) -> Column:
    return Column(np.array(values), np.ones(len(values), dtype=np.bool_))


def write_papers(
    folder: RunFolder,
    proof: Proof,
    plan: Plan,
    found: RouteDiff,
    done: tuple[tuple[StageDone, ...], ClientHealth],
) -> None:
    """Write the cases and the manifest."""
    stages, health = done
    lines = b"\n".join(msgspec.json.encode(case) for case in plan.cases) + b"\n"
    folder.cases_path.write_bytes(lines)
    folder.write_manifest(
        Manifest(
            run_id=folder.path.name,
            created_wall="2026-09-21T14:13:20+00:00",
            versions=Versions(
                routeproof=__version__, python="virtual", platform="virtual"
            ),
            proof=msgspec.to_builtins(proof),
            cases_digest=hashlib.sha256(lines).hexdigest(),
            fingerprint=fingerprint(plan.cases, proof.workload),
            route_diff=msgspec.to_builtins(found),
            plan=plan.summary(),
            stages=stages,
            health=health,
            finished=True,
        )
    )
