"""What the dashboard shows of recent answers, by arm and by slice.

A slice is a prompt class (structured, tools, text) with the way it is answered (whole
or stream): enough to see where a draft is rejected and where answers break. Nothing
here decides anything.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, field

import msgspec

from routeproof.canary.samples.spool import Sample
from routeproof.records.outcome import SERVED

RECENT = 2_000
PERCENTILES = (0.5, 0.9, 0.95, 0.99)
LEAST_BEYOND = 3
"""A percentile needs so many values on its thin side."""


def class_of(sample: Sample) -> str:
    """The prompt class of a sample, from what its request asks for."""
    form = sample.request.get("response_format")
    if isinstance(form, dict) and form.get("type") not in (None, "text"):
        return "structured"
    return "tools" if sample.request.get("tools") else "text"


class SliceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One arm in one slice, since the start.

    Attributes:
        rejected_share: Drafted tokens that were not accepted; ``None`` where the
            engine reports no drafts per request.
        accepted_length: Mean tokens per verify pass, bonus token included; ``None``
            likewise.
        bad: Signal name to (bad, judged).
    """

    slice: str
    arm: str
    n: int
    rejected_share: float | None
    accepted_length: float | None
    bad: dict[str, tuple[int, int]]


class Percentiles(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Of recent served answers of one arm, in seconds, nearest rank.

    ``None`` where fewer than 3 values lie beyond it.
    """

    metric: str
    arm: str
    n: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


@dataclass(slots=True)
class _Tally:
    n: int = 0
    drafted: int = 0
    accepted: int = 0
    accepted_in_passes: int = 0
    passes: int = 0
    bad: dict[str, list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )


@dataclass(slots=True)
class Slices:
    """Recent answers of control and canary. Not for several threads at once."""

    _tallies: dict[tuple[str, str], _Tally] = field(default_factory=dict, init=False)
    _times: dict[tuple[str, str], deque[float]] = field(
        default_factory=dict, init=False
    )

    def take(self, sample: Sample) -> None:
        """Take one scored sample in; those of the direct baseline are left out."""
        if sample.arm == "baseline":
            return
        name = f"{class_of(sample)}, {sample.stratum}"
        tally = self._tallies.setdefault((name, sample.arm), _Tally())
        tally.n += 1
        engine = sample.record.engine
        if engine.drafted is not None and engine.accepted is not None:
            tally.drafted += engine.drafted
            tally.accepted += engine.accepted
            if engine.spec_passes:
                tally.accepted_in_passes += engine.accepted
                tally.passes += engine.spec_passes
        for signal, bad in (sample.signals or {}).items():
            if bad is not None:
                tally.bad[signal][0] += int(bad)
                tally.bad[signal][1] += 1
        self._take_times(sample)

    def _take_times(self, sample: Sample) -> None:
        clock, stream = sample.record.clock, sample.record.stream
        if sample.record.answer.outcome not in SERVED or clock.end_s is None:
            return
        found = {"end to end": clock.end_s - clock.intended_s}
        if stream.chunk_s and sample.stratum == "stream":
            found["first token"] = stream.chunk_s[0] - clock.intended_s
        for metric, value in found.items():
            key = (metric, sample.arm)
            self._times.setdefault(key, deque(maxlen=RECENT)).append(value)

    def rows(self) -> list[SliceRow]:
        """Every slice, arms beside each other."""
        found = []
        for (name, arm), tally in sorted(self._tallies.items()):
            drafted, passes = tally.drafted, tally.passes
            found.append(
                SliceRow(
                    slice=name,
                    arm=arm,
                    n=tally.n,
                    rejected_share=1 - tally.accepted / drafted if drafted else None,
                    accepted_length=1 + tally.accepted_in_passes / passes
                    if passes
                    else None,
                    bad={k: (v[0], v[1]) for k, v in sorted(tally.bad.items())},
                )
            )
        return found

    def latency(self) -> list[Percentiles]:
        """Percentiles of each timing, arms beside each other."""
        found = []
        for (metric, arm), values in sorted(self._times.items()):
            ordered = sorted(values)
            at = {p: _percentile(ordered, p) for p in PERCENTILES}
            found.append(
                Percentiles(
                    metric=metric,
                    arm=arm,
                    n=len(ordered),
                    p50=at[0.5],
                    p90=at[0.9],
                    p95=at[0.95],
                    p99=at[0.99],
                )
            )
        return found

    def rejection(self) -> dict[str, float | None]:
        """Share of drafted tokens that were not accepted, by arm.

        ``None`` where the engine reports no drafts per request.
        """
        found: dict[str, float | None] = {}
        for arm in ("control", "canary"):
            own = [t for (_, each), t in self._tallies.items() if each == arm]
            drafted = sum(t.drafted for t in own)
            accepted = sum(t.accepted for t in own)
            found[arm] = 1 - accepted / drafted if drafted else None
        return found


def _percentile(ordered: list[float], share: float) -> float | None:
    n = len(ordered)
    if n * min(share, 1 - share) < LEAST_BEYOND - 1e-9:
        return None
    return ordered[min(n - 1, int(share * n))]
