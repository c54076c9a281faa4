"""HTML pages that need nothing beside themselves.

Everything that came from a model, an engine or a file is escaped by the templates; a
page's policy (``Content-Security-Policy``) allows only its own scripts and styles, by
their hash, so that even a fault in escaping runs nothing.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from routeproof.gates.result import Check
from routeproof.reports import figures
from routeproof.reports.charts.figure import Figure
from routeproof.reports.judgement import Evidenced


def page(
    template: str,
    context: dict[str, Any],
    *,
    drawn: Iterable[Figure],
    with_charts: bool = True,
) -> str:
    """A template filled, with style, scripts and chart data inside.

    Args:
        template: Name of a file in ``reports/page``.
        context: What the template shows; all of it is escaped.
        drawn: Every figure of the page.
        with_charts: Without them each figure is its table.
    """
    style, script = _asset("style.css"), _asset("page.js")
    charts = chart_library() if with_charts else None
    scripts = [text for text in (charts, script) if text]
    return (
        _environment()
        .get_template(template)
        .render(
            context,
            policy=_policy(style, scripts),
            style=Markup(style),
            scripts=[Markup(text) for text in scripts],
            has_charts=charts is not None,
            lacks_charts=with_charts and charts is None,
            specifications=_data_block(drawn),
        )
    )


def chart_library() -> str | None:
    """Vega, Vega-Lite and Vega-Embed as one script.

    Returns:
        ``None`` in a source tree whose build step found no vl-convert; a page then
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


def _data_block(drawn: Iterable[Figure]) -> Markup:
    """Chart data as JSON that cannot end the element it stands in."""
    charts = {figure.key: figure.specification for figure in drawn}
    text = json.dumps(charts, separators=(",", ":"), sort_keys=True)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("routeproof.reports", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(_filters())
    return environment


def _filters() -> dict[str, Any]:
    return {
        "status_word": lambda status: figures.STATUS_WORD[status].lower(),
        "status_mark": lambda status: figures.STATUS_MARK[status],
        "decision_word": lambda decision: figures.DECISION_WORD[decision],
        "gate_title": lambda gate: figures.GATE_TITLE[gate],
        "tally": _tally,
        "evidence_line": _evidence_line,
        "question": figures.question,
        "told": figures.told,
        "estimate": figures.estimate,
        "limit": figures.limit,
        "amount": figures.amount,
        "bounds": lambda c: figures.bounds(c.interval, c.kind, c.unit),
        "number": figures.number,
        "kebab": lambda text: str(text).replace("_", "-"),
        "spaced": lambda text: str(text).replace("_", " "),
    }


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
