"""What a load run measured, as text for people."""

from collections.abc import Mapping

from routeproof.gates.facts import LoadRow
from routeproof.jobs.loading.summary import Measured, level_part, speed_of
from routeproof.reports import figures

_HEAD = f"{'metric':<32}{'p50':>12}{'p95':>12}{'p99':>12}{'mean':>12}{'n':>8}"


def table(run: Measured) -> str:
    """Level by level, then the client's own health."""
    lines: list[str] = []
    loads = {row.level: row for row in speed_of(run).loads}
    for phase, level in run.requests.levels():
        part = level_part(run, phase, level)
        failed = {k: n for k, n in part["outcomes"].items() if k != "completed"}
        others = ", ".join(f"{n} {name}" for name, n in failed.items())
        done = part["outcomes"]["completed"]
        lines.append(
            f"{level}: {part['requests']} requests, {done} completed"
            + (f", {others}" if others else "")
        )
        lines.append(_HEAD)
        lines += [_row(name, row) for name, row in part["metrics"].items()]
        if level in loads:
            lines.append(_steady(loads[level]))
        lines.append("")
    health = run.manifest.health
    if health is None:
        lines.append("client  NOT VALID: its health was not recorded")
        return "\n".join(lines)
    lines.append("client  valid" if health.valid else "client  NOT VALID")
    lines += [f"        {reason}" for reason in health.reasons]
    lines += [f"        note: {note}" for note in health.notes]
    return "\n".join(lines)


def _steady(row: LoadRow) -> str:
    rate, whole = row.requests_per_s, row.whole_requests_per_s
    window = row.window_s
    if rate is None or window is None:
        return "requests/s      unknown"
    ramps = "" if whole is None else f"; {figures.plain(whole)} with the ramps"
    return (
        f"requests/s      {figures.plain(rate)} in the steady window, "
        f"{window[0]:.1f} to {window[1]:.1f} s{ramps}"
    )


def _row(name: str, row: Mapping[str, float | None]) -> str:
    is_time = name.endswith("_s") and not name.endswith("_per_s")
    shown = name.removesuffix("_s") if is_time else name
    cells = [_cell(row[key], is_time) for key in ("p50", "p95", "p99", "mean")]
    return (
        f"{shown:<32}" + "".join(f"{c:>12}" for c in cells) + f"{row['n'] or 0:>8.0f}"
    )


def _cell(value: float | None, is_time: bool) -> str:
    if value is None:
        return "unknown"
    if not is_time:
        return f"{value:.2f}"
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.2f} s"
