"""The summary of a load run as a table for people."""

from collections.abc import Mapping
from typing import Any

_HEAD = f"{'metric':<32}{'p50':>12}{'p95':>12}{'p99':>12}{'mean':>12}{'n':>8}"


def table(found: Mapping[str, Any]) -> str:
    """Level by level, then the client's own health."""
    lines: list[str] = []
    for level, part in (found["levels"] or {"": found}).items():
        failed = {k: n for k, n in part["outcomes"].items() if n and k != "completed"}
        others = ", ".join(f"{n} {name}" for name, n in failed.items())
        done = part["outcomes"].get("completed", 0)
        lines.append(
            f"{level}: {part['requests']} requests, {done} completed"
            + (f", {others}" if others else "")
        )
        lines.append(_HEAD)
        lines += [_row(name, row) for name, row in part["metrics"].items()]
        lines.append("")
    client = found["client"]
    lines.append("client  valid" if client["valid"] else "client  NOT VALID")
    lines += [f"        {reason}" for reason in client["reasons"]]
    lines += [f"        note: {note}" for note in client.get("notes", ())]
    return "\n".join(lines)


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
