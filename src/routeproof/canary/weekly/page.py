"""The weekly report as Markdown, and as one page that opens without a network."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

from routeproof.canary.weekly.chart import picture, shown
from routeproof.canary.weekly.indicators import ARMS, INDICATORS, Cell, Weekly
from routeproof.reports import markup

ANSWER_CHARS = 600

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5b6570;--line:#dfe2e6;
--bg:#fff;--control:#2757c4;--canary:#a35200;--mark:#6b4fa0}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#a3adb8;--line:#343a41;
--bg:#14171a;--control:#8fb0ff;--canary:#f0b060;--mark:#c3a8f5}}
body{margin:0 auto;max-width:860px;padding:16px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2em}
h3{font-size:.95rem;margin:1.2em 0 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:4px 8px 4px 0;border-top:1px solid var(--line);
vertical-align:top}th{color:var(--soft);font-weight:600}
svg{width:100%;min-width:620px;height:auto;display:block}
svg text{font-size:11px;fill:var(--soft)}svg .title{font-size:12px;fill:var(--ink)}
svg .mark{fill:var(--mark);font-weight:600}
pre{white-space:pre-wrap;overflow-wrap:anywhere;
border:1px solid var(--line);border-radius:6px;padding:8px}
.soft{color:var(--soft)}.control{color:var(--control)}.canary{color:var(--canary)}
.wide{overflow-x:auto}
"""


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
            yield [row.title, arm, *(shown(v, row) for v in values)]


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
        '<b class="canary">canary</b> (squares) side by side; numbered upright lines '
        "are the changes below.</p>"
    )
    yield "<h2>Changes</h2>"
    changes = [
        [str(n), _time(c.at_s), c.what, c.actor, c.reason]
        for n, c in enumerate(report.changes, 1)
    ]
    yield (
        _table(["", "when", "what", "who", "why"], changes)
        if changes
        else "<p>Nothing was changed.</p>"
    )
    if not report.cells:
        yield "<p>No answer was sampled.</p>"
    for class_ in _classes(report):
        yield f"<h2>Prompts: {escape(class_)}</h2>"
        yield f'<div class="wide" tabindex="0">{picture(report, class_)}</div>'
        heads = ["indicator", "arm", *(day[5:] for day in report.days)]
        numbers = _table(heads, list(_rows(report, class_)))
        yield f"<details><summary>Numbers</summary>{numbers}</details>"
    yield "<h2>Structured failures</h2>"
    yield f'<p class="soft">{_failure_note(report)}</p>'
    for sample in report.failures:
        text = (sample.record.answer.text or "")[:ANSWER_CHARS]
        yield f'<p class="{sample.arm}">{sample.arm}, {_time(sample.at_s)}</p>'
        yield f'<pre tabindex="0">{escape(text)}</pre>'


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
