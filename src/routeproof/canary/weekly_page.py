"""The weekly report as Markdown, and as one page that opens without a network."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

from routeproof.canary.weekly import ARMS, DAY_S, INDICATORS, Cell, Indicator, Weekly
from routeproof.reports import markup

ANSWER_CHARS = 600
WIDTH, HEIGHT, LEFT = 640, 120, 8

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5b6570;--line:#dfe2e6;
--bg:#fff;--control:#2757c4;--canary:#b25e00}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#a3adb8;--line:#343a41;
--bg:#14171a;--control:#8fb0ff;--canary:#f0b060}}
body{margin:0 auto;max-width:760px;padding:16px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2em}
h3{font-size:.95rem;margin:1.2em 0 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:4px 8px 4px 0;border-top:1px solid var(--line);
vertical-align:top}th{color:var(--soft);font-weight:600}
svg{width:100%;height:auto;display:block}pre{white-space:pre-wrap;overflow-wrap:anywhere;
border:1px solid var(--line);border-radius:6px;padding:8px}
.soft{color:var(--soft)}.control{color:var(--control)}.canary{color:var(--canary)}
.wide{overflow-x:auto}
"""


def _shown(value: float | None, indicator: Indicator) -> str:
    if value is None:
        return "–"
    return f"{value:.2%}" if indicator.is_share else f"{value:.4g}"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")


def _cells(report: Weekly) -> dict[tuple[str, str, str], Cell]:
    return {(c.class_, c.arm, c.day): c for c in report.cells}


def _classes(report: Weekly) -> list[str]:
    return sorted({c.class_ for c in report.cells})


def _rows(report: Weekly, class_: str) -> Iterator[list[str]]:
    cells = _cells(report)
    for arm in ARMS:
        of_arm = [cells.get((class_, arm, day)) for day in report.days]
        yield ["sampled", arm, *("–" if c is None else str(c.sampled) for c in of_arm)]
        for row in INDICATORS:
            values = [None if c is None else row.of(c) for c in of_arm]
            yield [row.title, arm, *(_shown(v, row) for v in values)]


def _title(report: Weekly) -> str:
    return f"Canary {report.canary}: {report.days[0]} to {report.days[-1]}"


def _failure_note(report: Weekly) -> str:
    return (
        f"{len(report.failures)} of {report.failures_total}, chosen by a hash of the "
        "request id; texts are redacted."
    )


def markdown(report: Weekly) -> str:
    """The report as Markdown."""
    return "\n".join(_markdown(report))


def _markdown(report: Weekly) -> Iterator[str]:
    yield f"# {_title(report)}"
    yield ""
    yield "## Changes"
    yield ""
    changes = [[_time(c.at_s), c.what, c.actor, c.reason] for c in report.changes]
    if changes:
        yield from markup.table(["when (UTC)", "what", "who", "why"], changes)
    else:
        yield "Nothing was changed.\n"
    if not report.cells:
        yield "No answer was sampled.\n"
    for class_ in _classes(report):
        yield f"## Prompts: {class_}"
        yield ""
        yield from markup.table(
            ["indicator", "arm", *report.days], _rows(report, class_)
        )
    yield "## Structured failures"
    yield ""
    yield _failure_note(report) + "\n"
    for sample in report.failures:
        yield f"{sample.arm}, {_time(sample.at_s)}, `{markup.code(sample.request_id)}`"
        yield ""
        yield from markup.fenced(sample.record.answer.text or "", most=ANSWER_CHARS)


def html(report: Weekly) -> str:
    """The report as one HTML page: no script, nothing from elsewhere."""
    body = "\n".join(_body(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(_title(report))}</title><style>{_STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _body(report: Weekly) -> Iterator[str]:
    yield f"<h1>{escape(_title(report))}</h1>"
    yield (
        '<p class="soft">Days of UTC. <b class="control">control</b> and '
        '<b class="canary">canary</b> side by side; upright lines mark changes.</p>'
    )
    yield "<h2>Changes</h2>"
    changes = [[_time(c.at_s), c.what, c.actor, c.reason] for c in report.changes]
    yield (
        _table(["when", "what", "who", "why"], changes)
        if changes
        else "<p>Nothing was changed.</p>"
    )
    if not report.cells:
        yield "<p>No answer was sampled.</p>"
    for class_ in _classes(report):
        yield f"<h2>Prompts: {escape(class_)}</h2>"
        for row in INDICATORS:
            yield from _chart(report, class_, row)
        heads = ["indicator", "arm", *(day[5:] for day in report.days)]
        numbers = _table(heads, list(_rows(report, class_)))
        yield f"<details><summary>Numbers</summary>{numbers}</details>"
    yield f"<h2>Structured failures</h2><p class=soft>{_failure_note(report)}</p>"
    for sample in report.failures:
        text = (sample.record.answer.text or "")[:ANSWER_CHARS]
        yield f'<p class="{sample.arm}">{sample.arm}, {_time(sample.at_s)}</p>'
        yield f"<pre>{escape(text)}</pre>"


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _chart(report: Weekly, class_: str, row: Indicator) -> Iterator[str]:
    cells = _cells(report)
    lines: dict[str, list[tuple[int, float]]] = {}
    for arm in ARMS:
        for i, day in enumerate(report.days):
            cell = cells.get((class_, arm, day))
            value = None if cell is None else row.of(cell)
            if value is not None:
                lines.setdefault(arm, []).append((i, value))
    if not lines:
        yield f'<h3>{row.title}</h3><p class="soft">not reported by the engine</p>'
        return
    top = max(v for points in lines.values() for _, v in points) or 1.0
    yield f'<h3>{row.title} <span class="soft">0 to {_shown(top, row)}</span></h3>'
    yield _svg(report, row.title, lines, top)


def _svg(
    report: Weekly, title: str, lines: dict[str, list[tuple[int, float]]], top: float
) -> str:
    width = (WIDTH - 2 * LEFT) / len(report.days)
    base, first_s = HEIGHT - 20, report.since_s // DAY_S * DAY_S
    parts = [f'<line x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{base}" y2="{base}" '
             'stroke="var(--line)"/>']  # fmt: skip
    for change in report.changes:
        x = LEFT + width * (change.at_s - first_s) / DAY_S
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{base}" stroke="var(--soft)" '
            f'stroke-dasharray="3 3"><title>{escape(change.what)}</title></line>'
        )
    for i, day in enumerate(report.days):
        parts.append(
            f'<text x="{LEFT + width * (i + 0.5):.1f}" y="{HEIGHT - 5}" '
            f'text-anchor="middle" font-size="11" fill="var(--soft)">{day[5:]}</text>'
        )
    for arm, points in lines.items():
        at = [
            (LEFT + width * (i + 0.5), base - (base - 10) * value / top)
            for i, value in points
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        parts.append(f'<polyline points="{path}" fill="none" stroke="var(--{arm})" '
                     'stroke-width="2"/>')  # fmt: skip
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="var(--{arm})"/>'
            for x, y in at
        ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)} by day">{"".join(parts)}</svg>'
    )
