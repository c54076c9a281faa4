"""Prometheus text to normalised numbers, by a table of names."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

_LINE = re.compile(
    r"^(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+"
    r"(?P<value>[^\s]+)(?:\s+-?[0-9.]+)?(?:\s+#.*)?$"
)
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')

SPECULATION = re.compile(r"spec|draft|accept|verif", re.IGNORECASE)
"""Names that may be about speculation; an unknown one of these is shown."""


class Sample(NamedTuple):
    """One line of an exposition."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """How one normalised number is read.

    Attributes:
        name: Normalised name; with ``position_label`` it gets ``:<i>`` appended.
        names: The engine's names, newest first; the first that is present is taken.
        within: How samples of one replica become one number.
        across: How the numbers of all replicas become one.
        where: Labels a sample must carry.
        scale: Factor to the normalised unit.
        label: Take the number from this label instead of the sample's value.
        product: Where that label is absent, the product of these labels.
    """

    name: str
    names: tuple[str, ...]
    within: Literal["sum", "max"] = "sum"
    across: Literal["sum", "max"] = "sum"
    where: tuple[tuple[str, str], ...] = ()
    scale: float = 1.0
    position_label: str | None = None
    label: str | None = None
    product: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a table found on a page."""

    values: dict[str, float]
    replicas: dict[str, dict[str, float]]
    unknown: tuple[str, ...]


def samples(exposition: str) -> Iterator[Sample]:
    """Every finite sample of a page that is a counter or a gauge.

    ``_created`` series are stamps, not counters, and histogram buckets are read by
    `engines.histograms`; both are left out.
    """
    return raw_samples(exposition, but=("_created", "_bucket"))


def raw_samples(exposition: str, *, but: tuple[str, ...] = ()) -> Iterator[Sample]:
    """Every finite sample of a page; lines that are none are passed over.

    Args:
        exposition: Prometheus text.
        but: Endings of names to leave out, before they cost anything.
    """
    for line in exposition.splitlines():
        if not line or line[0] == "#":
            continue
        match = _LINE.match(line.strip())
        if match is None or match["name"].endswith(but):
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if math.isfinite(value):
            labels = dict(_LABEL.findall(match["labels"] or ""))
            yield Sample(match["name"], labels, value)


def info_labels(exposition: str, name: str) -> dict[str, str]:
    """Labels of the first sample of an info series; empty when it is absent."""
    return next((s.labels for s in samples(exposition) if s.name == name), {})


def read_series(
    exposition: str, table: Iterable[Series], replica_labels: tuple[str, ...]
) -> Found:
    """Normalised numbers of a page, over all replicas and per replica.

    Args:
        exposition: Prometheus text; anything else gives nothing.
        table: The engine's names.
        replica_labels: Labels that tell replicas apart; a label an engine leaves out
            or calls ``undefined`` counts as absent.
    """
    by_name: dict[str, list[Sample]] = {}
    for sample in samples(exposition):
        by_name.setdefault(sample.name, []).append(sample)
    values: dict[str, float] = {}
    replicas: dict[str, dict[str, float]] = {}
    known: set[str] = set()
    for series in table:
        known.update(series.names)
        taken = _first_present(series, by_name)
        for name, found in _by_position(series, taken).items():
            parts = {
                replica: _fold(series.within, [s.value * series.scale for s in part])
                for replica, part in _by_replica(found, replica_labels).items()
            }
            values[name] = _fold(series.across, list(parts.values()))
            for replica, number in parts.items():
                replicas.setdefault(replica, {})[name] = number
    unknown = sorted(n for n in by_name if n not in known and SPECULATION.search(n))
    return Found(values, replicas, tuple(unknown))


def _first_present(series: Series, by_name: Mapping[str, list[Sample]]) -> list[Sample]:
    for name in series.names:
        found = [
            sample
            for sample in by_name.get(name, ())
            if all(sample.labels.get(key) == value for key, value in series.where)
        ]
        if series.label is not None:
            found = [s for s in map(lambda s: _from_label(series, s), found) if s]
        if found:
            return found
    return []


def _from_label(series: Series, sample: Sample) -> Sample | None:
    for labels in ((series.label or "",), series.product):
        try:
            value = math.prod(float(sample.labels[label]) for label in labels)
        except (KeyError, ValueError):
            continue
        if labels and math.isfinite(value):
            return sample._replace(value=value)
    return None


def _by_position(series: Series, found: list[Sample]) -> dict[str, list[Sample]]:
    if series.position_label is None:
        return {series.name: found} if found else {}
    out: dict[str, list[Sample]] = {}
    for sample in found:
        position = sample.labels.get(series.position_label, "")
        if position.isdigit():
            out.setdefault(f"{series.name}:{int(position)}", []).append(sample)
    return out


def _by_replica(
    found: list[Sample], replica_labels: tuple[str, ...]
) -> dict[str, list[Sample]]:
    out: dict[str, list[Sample]] = {}
    for sample in found:
        parts = [
            f"{label}={sample.labels[label]}"
            for label in replica_labels
            if sample.labels.get(label, "undefined") != "undefined"
        ]
        out.setdefault(",".join(parts), []).append(sample)
    return out


def _fold(how: str, numbers: list[float]) -> float:
    return max(numbers) if how == "max" else math.fsum(numbers)
