"""Every question as a row of CSV, numbers in base units, for spreadsheets."""

import csv
import io
import json

from routeproof.gates.result import Check
from routeproof.reports.judgement import Judgement

COLUMNS = (
    "run_id",
    "decision",
    "gate",
    "question",
    "slice",
    "status",
    "required",
    "kind",
    "unit",
    "baseline",
    "candidate",
    "estimate",
    "low",
    "high",
    "level",
    "method",
    "limit",
    "n",
    "n_needed",
    "p_value",
    "reason",
)

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def render(judgement: Judgement) -> str:
    """One row per check; an empty cell is "not known".

    A text that a spreadsheet would run as a formula is led by an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    start = (judgement.provenance.run_id, judgement.verdict.decision.value)
    for gate in judgement.gates:
        for check in gate.checks:
            writer.writerow([*start, gate.gate, *_cells(check)])
    return out.getvalue()


def _cells(check: Check) -> tuple[object, ...]:
    interval = check.interval
    ends = (
        (None,) * 4
        if interval is None
        else (interval.low, interval.high, interval.level, interval.method)
    )
    return (
        _text(check.name),
        _text(json.dumps(check.slice, sort_keys=True)) if check.slice else "",
        check.status.value,
        "yes" if check.required else "no",
        check.kind,
        check.unit,
        check.baseline,
        check.candidate,
        check.estimate,
        *ends,
        check.limit,
        check.n,
        check.n_needed,
        check.p_value,
        _text(check.reason),
    )


def _text(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
