"""The report as one HTML file that opens without a network.

Everything that came from a model, an engine or a file is escaped by the template; the
page's policy (``Content-Security-Policy``) allows only its own scripts and styles, by
their hash, so that even a fault in escaping runs nothing.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from routeproof.gates.facts import Flip
from routeproof.gates.result import Check
from routeproof.reports import figures
from routeproof.reports.divergence import SideBySide, side_by_side
from routeproof.reports.judgement import Evidenced, Judgement
from routeproof.reports.page_tables import page_tables
from routeproof.reports.sections import Drawings, draw, gate_cards

FLIP_BUDGET_BYTES = 1_500_000
"""Answers beyond this are left to ``judgement.json``, so that a page stays small."""


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
    style, script = _asset("style.css"), _asset("page.js")
    charts = chart_library() if with_charts else None
    scripts = [text for text in (charts, script) if text]
    return _template().render(
        judgement=judgement,
        verdict=judgement.verdict,
        run=judgement.provenance,
        evidence=judgement.evidence,
        drawings=drawings,
        cards=gate_cards(judgement),
        tables=page_tables(judgement),
        flips=_flips(judgement.evidence.quality.flips),
        worst=[side_by_side(flip) for flip in judgement.worst.examples]
        if judgement.worst
        else [],
        needed=_needed(judgement),
        files=files,
        policy=_policy(style, scripts),
        style=Markup(style),
        scripts=[Markup(text) for text in scripts],
        has_charts=charts is not None,
        lacks_charts=with_charts and charts is None,
        specifications=_data_block(drawings),
    )


def chart_library() -> str | None:
    """Vega, Vega-Lite and Vega-Embed as one script.

    Returns:
        ``None`` in a source tree whose build step found no vl-convert; the page then
        has tables only, and says so.
    """
    built = resources.files("routeproof.reports") / "page" / "vega.js"
    return built.read_text(encoding="utf-8") if built.is_file() else None


def _asset(name: str) -> str:
    place = resources.files("routeproof.reports") / "page" / name
    return place.read_text(encoding="utf-8")


def _policy(style: str, scripts: Sequence[str]) -> str:
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _data_block(drawings: Drawings) -> Markup:
    """Chart data as JSON that cannot end the element it stands in."""
    charts = {figure.key: figure.specification for figure in drawings.all()}
    text = json.dumps(charts, separators=(",", ":"), sort_keys=True)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


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


def _evidence_line(needed: Evidenced) -> str:
    of = "" if needed.need is None else f" of {needed.need:,}"
    return f"{figures.question(needed.question)}: {needed.have:,}{of} {needed.unit}"


def _tally(checks: Sequence[Check]) -> str:
    """How many of each status: ``24 passed, 2 inconclusive``."""
    counts = Counter(check.status for check in checks)
    return ", ".join(
        f"{counts[status]} {word.lower()}"
        for status, word in figures.STATUS_WORD.items()
        if counts[status]
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("routeproof.reports", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_filters())
    return environment.get_template("page.html.j2")


def _filters() -> dict[str, Any]:
    return {
        "status_word": lambda status: figures.STATUS_WORD[status].lower(),
        "status_mark": lambda status: figures.STATUS_MARK[status],
        "decision_word": lambda decision: figures.DECISION_WORD[decision],
        "gate_title": lambda gate: figures.GATE_TITLE[gate],
        "tally": _tally,
        "evidence_line": _evidence_line,
        "question": figures.question,
        "estimate": figures.estimate,
        "limit": figures.limit,
        "amount": figures.amount,
        "bounds": lambda c: figures.bounds(c.interval, c.kind, c.unit),
        "number": figures.number,
        "kebab": lambda text: str(text).replace("_", "-"),
        "spaced": lambda text: str(text).replace("_", " "),
    }
