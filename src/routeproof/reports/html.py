"""The report of a run as one HTML file that opens without a network."""

from collections.abc import Sequence

from routeproof.gates.facts import Flip
from routeproof.reports.divergence import SideBySide, side_by_side
from routeproof.reports.judgement import Evidenced, Judgement
from routeproof.reports.page_tables import page_tables
from routeproof.reports.sections import draw, gate_cards
from routeproof.reports.self_contained import page

FLIP_BUDGET_BYTES = 1_500_000
"""Answers beyond this are left to the records, so that a page stays small."""


def render(
    judgement: Judgement, *, files: Sequence[str] = (), with_charts: bool = True
) -> str:
    """One self-contained page.

    Args:
        judgement: What was decided, on which numbers.
        files: Names of the raw files of the run, relative to where the page will lie;
            they become links.
        with_charts: Without them the page has the numbers of every chart as a table,
            and weighs a tenth.
    """
    drawings = draw(judgement)
    worst = judgement.worst.examples if judgement.worst else ()
    context = {
        "judgement": judgement,
        "verdict": judgement.verdict,
        "run": judgement.provenance,
        "evidence": judgement.evidence,
        "drawings": drawings,
        "cards": gate_cards(judgement),
        "tables": page_tables(judgement),
        "flips": _flips(judgement.evidence.quality.flips),
        "worst": [side_by_side(flip) for flip in worst],
        "needed": _needed(judgement),
        "files": files,
    }
    return page(
        "report.html.j2", context, drawn=drawings.all(), with_charts=with_charts
    )


def _needed(judgement: Judgement) -> list[Evidenced]:
    """What is missing, required questions first."""
    checks = [check for gate in judgement.gates for check in gate.checks]
    required = {check.name for check in checks if check.required}
    return sorted(judgement.more_evidence, key=lambda e: e.question not in required)


def _flips(flips: Sequence[Flip]) -> list[SideBySide]:
    shown: list[SideBySide] = []
    room = FLIP_BUDGET_BYTES
    for flip in flips:
        texts = (flip.baseline_text, flip.candidate_text, flip.prompt)
        room -= sum(len(text.encode()) for text in texts) + 1500
        if room < 0:
            break
        shown.append(side_by_side(flip))
    return shown
