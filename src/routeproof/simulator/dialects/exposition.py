"""Writing Prometheus exposition text."""

from collections.abc import Iterable, Mapping

from routeproof.simulator.defects import ReportDefects

Series = tuple[str, str, Mapping[str, str], float]
"""(family, kind, labels, value); a counter's name already ends in ``_total``."""


def write(series: Iterable[Series], wrong: ReportDefects) -> bytes:
    """Exposition text, families in order, with what a defective route leaves out."""
    lines: list[str] = []
    seen: set[str] = set()
    for name, kind, labels, value in series:
        if any(part in name for part in wrong.missing):
            continue
        if wrong.renamed and "spec" in name:
            name = _renamed(name, wrong.renamed)
        if name not in seen:
            seen.add(name)
            lines.append(f"# HELP {name} Simulated.")
            lines.append(f"# TYPE {name} {kind}")
        inner = ",".join(f'{k}="{v}"' for k, v in labels.items())
        lines.append(
            f"{name}{{{inner}}} {float(value)!r}"
            if inner
            else f"{name} {float(value)!r}"
        )
    return ("\n".join(lines) + "\n").encode()


def _renamed(name: str, suffix: str) -> str:
    return (
        name.removesuffix("_total")
        + suffix
        + ("_total" if name.endswith("_total") else "")
    )


def family(
    prefix: str, labels: Mapping[str, str], values: Mapping[str, float]
) -> list[Series]:
    """Series with the same labels; what ends in ``_total`` is a counter."""
    return [
        (f"{prefix}{name}", _kind(name), labels, value)
        for name, value in values.items()
    ]


def by_label(
    name: str,
    labels: Mapping[str, str],
    label: str,
    values: Iterable[tuple[object, float]],
) -> list[Series]:
    """One series for each value of a label."""
    return [
        (name, _kind(name), {**labels, label: str(at)}, value) for at, value in values
    ]


def histograms(
    prefix: str, labels: Mapping[str, str], totals: Mapping[str, float], count: int
) -> list[Series]:
    """Sums and counts of histograms; the simulator keeps no buckets."""
    return [
        (f"{prefix}{name}_{end}", "counter", labels, value)
        for name, total in totals.items()
        for end, value in (("sum", total), ("count", count))
    ]


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"
