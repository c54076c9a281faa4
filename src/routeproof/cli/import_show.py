"""What ``routeproof import`` prints."""

import json
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from routeproof.jobs.import_results import Against, ImportSummary
from routeproof.stats.interval import NonInferiority
from routeproof.workloads.results.compare import Pairs, Row


def show_kinds(kinds: Mapping[str, str], as_json: bool) -> None:
    """List what can be imported."""
    if as_json:
        click.echo(json.dumps(dict(kinds), indent=2))
        return
    for name, form in kinds.items():
        click.echo(f"{name:<16} {form}")


def show_import(summary: ImportSummary, as_json: bool) -> None:
    """Say what was written and what was left out."""
    if as_json:
        document = {
            "path": str(summary.path),
            "what": summary.what,
            "n": summary.n,
            "counts": dict(summary.counts),
            "left_out": dict(summary.left_out),
            "notes": list(summary.notes),
        }
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"{summary.n} {summary.what} -> {summary.path}")
    if len(summary.counts) > 1:
        click.echo(", ".join(f"{name} {n}" for name, n in summary.counts.items()))
    for reason, n in summary.left_out.items():
        click.echo(f"left out: {n} {reason}")
    for note in summary.notes:
        click.echo(f"note: {note}")


def show_comparison(found: Against, as_json: bool) -> None:
    """Show two imported runs side by side."""
    if as_json:
        click.echo(json.dumps(_document(found), indent=2))
        return
    for pairs in found.comparison.pairs:
        _show_pairs(pairs, found.decided.get(pairs.scorer))
    for row in found.comparison.rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
        click.echo(
            f"{row.load:<18} {row.definition_id:<24} {row.statistic:<6} "
            f"{row.baseline:>12.5g} {row.candidate:>12.5g} {row.unit:<10} x{ratio}"
        )
    if found.comparison.rows:
        click.echo("ratios of aggregates: no test is possible without the requests")
    for name in found.comparison.withheld:
        click.echo(f"withheld, too few values: {name}")
    for name in found.comparison.unmatched:
        click.echo(f"no counterpart at the same load: {name}")


def _show_pairs(pairs: Pairs, decided: NonInferiority | None) -> None:
    texts = "" if pairs.equal_texts is None else f", {pairs.equal_texts} equal texts"
    means = (
        f"{pairs.baseline_mean:.3f} -> {pairs.candidate_mean:.3f}"
        if pairs.baseline_mean is not None and pairs.candidate_mean is not None
        else "no scores"
    )
    click.echo(
        f"{pairs.scorer}: {means}, {pairs.n} pairs, {pairs.losses} worse, "
        f"{pairs.gains} better, {pairs.unscored} unscored, {pairs.missing} missing"
        f"{texts}"
    )
    if pairs.baseline_mean == 0:
        click.echo("  the baseline gets nothing right here: no loss could be seen")
    if decided is not None:
        needed = f", about {decided.n_needed} pairs needed" if decided.n_needed else ""
        low, high = decided.interval.low, decided.interval.high
        shown = "" if low is None or high is None else f"[{low:+.3f}, {high:+.3f}]"
        click.echo(
            f"  {decided.decision}: {decided.estimate:+.3f} {shown}, "
            f"tolerance {decided.tolerance:g}{needed}"
        )


def _document(found: Against) -> dict[str, Any]:
    comparison = found.comparison
    return {
        "pairs": [
            {k: v for k, v in pairs._asdict().items() if k != "differences"}
            for pairs in comparison.pairs
        ],
        "decided": {k: msgspec.to_builtins(v) for k, v in found.decided.items()},
        "rows": [_row(row) for row in comparison.rows],
        "withheld": list(comparison.withheld),
        "unmatched": list(comparison.unmatched),
    }


def _row(row: Row) -> dict[str, Any]:
    return {**row._asdict(), "ratio": row.ratio}
