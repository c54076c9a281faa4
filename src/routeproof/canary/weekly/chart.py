"""One picture per prompt class: all indicators over one time axis, changes marked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from routeproof.canary.weekly.indicators import (
    ARMS,
    DAY_S,
    INDICATORS,
    Cell,
    Indicator,
    Weekly,
)

WIDTH, LEFT, RIGHT = 760, 62, 10
PANEL, GAP, TOP, FOOT = 92, 30, 22, 24
_BY_TITLE = {indicator.title: indicator for indicator in INDICATORS}


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the picture: indicators with one scale.

    Attributes:
        rows: Titles of indicators, the plainest line first; the others are dashed.
        unit: Behind the numbers of the scale.
    """

    title: str
    rows: tuple[str, ...]


PANELS = (
    Panel("drafts rejected", ("rejection rate",)),
    Panel(
        "accepted tokens per verify pass: median, dashed p10 and p90",
        (
            "acceptance length, median",
            "acceptance length, p10",
            "acceptance length, p90",
        ),
    ),
    Panel(
        "end to end, s: p50, dashed p95 and p99",
        ("end to end p50, s", "end to end p95, s", "end to end p99, s"),
    ),
    Panel("structured answers that fail", ("structured failures",)),
    Panel(
        "complaints a day, dashed those that say off-topic",
        ("complaints", "off-topic complaints"),
    ),
)
DASHES = ("", "5 3", "2 3")


def shown(value: float | None, indicator: Indicator) -> str:
    """A value as text; a dash when it is unknown."""
    if value is None:
        return "–"
    return f"{value:.2%}" if indicator.is_share else f"{value:.4g}"


def picture(report: Weekly, class_: str) -> str:
    """The picture of one prompt class as SVG."""
    return "".join(_picture(report, class_))


def _picture(report: Weekly, class_: str) -> Iterator[str]:
    height = TOP + len(PANELS) * (PANEL + GAP) + FOOT
    said = f"{class_}: {', '.join(panel.title for panel in PANELS)}, by day"
    yield (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(said)}">'
    )
    yield from _marks(report, height)
    cells = {(c.arm, c.day): c for c in report.cells if c.class_ == class_}
    for number, panel in enumerate(PANELS):
        base = TOP + number * (PANEL + GAP) + GAP + PANEL - 6
        yield from _panel(report, cells, panel, base)
    for at, day in enumerate(report.days):
        yield _text(_x(report, at + 0.5), height - 6, day[5:], "middle")
    yield "</svg>"


def _x(report: Weekly, days: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * days / len(report.days)


def _marks(report: Weekly, height: int) -> Iterator[str]:
    """Numbered upright lines through all panels, as in the table of changes."""
    first_s = report.since_s // DAY_S * DAY_S
    for number, change in enumerate(report.changes, 1):
        x = _x(report, (change.at_s - first_s) / DAY_S)
        yield (
            f'<g><title>{number}: {escape(change.what)}</title><line x1="{x:.1f}" '
            f'x2="{x:.1f}" y1="{TOP - 4}" y2="{height - FOOT}" stroke="var(--mark)" '
            'stroke-dasharray="3 3"/></g>'
        )
        row = number % 2
        yield _text(x, 9 + 9 * row, str(number), "middle", "mark")


def _panel(
    report: Weekly, cells: dict[tuple[str, str], Cell], panel: Panel, base: float
) -> Iterator[str]:
    yield _text(LEFT, base - PANEL + 2, panel.title, "start", "title")
    lines = list(_lines(report, cells, panel))
    if not lines:
        yield _text(LEFT, base - PANEL / 2, "not reported", "start")
        return
    indicator = _BY_TITLE[panel.rows[0]]
    top = max(value for _, _, points in lines for _, value in points) or 1.0
    for share in (0.0, 1.0):
        y = base - (PANEL - 14) * share
        yield (
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="var(--line)"/>'
        )
        yield _text(LEFT - 6, y + 4, shown(top * share, indicator), "end")
    for arm, dash, points in lines:
        yield from _line(report, arm, dash, _placed(points, base, top))


def _placed(
    points: Sequence[tuple[int, float]], base: float, top: float
) -> list[tuple[int, float]]:
    return [(day, base - (PANEL - 14) * value / top) for day, value in points]


def _lines(
    report: Weekly, cells: dict[tuple[str, str], Cell], panel: Panel
) -> Iterator[tuple[str, str, list[tuple[int, float]]]]:
    """Arm, dash and known values by number of day; lines without any are left out."""
    for arm in ARMS:
        for dash, title in zip(DASHES, panel.rows, strict=False):
            points = []
            for at, day in enumerate(report.days):
                cell = cells.get((arm, day))
                value = None if cell is None else _BY_TITLE[title].of(cell)
                if value is not None:
                    points.append((at, value))
            if points:
                yield arm, dash, points


def _line(
    report: Weekly, arm: str, dash: str, points: Sequence[tuple[int, float]]
) -> Iterator[str]:
    """A line that breaks at days without a value, with a mark at each day.

    The canary's marks are squares, so that colour is not all that tells the arms apart.
    """
    run: list[str] = []
    runs = [run]
    for at, (day, y) in enumerate(points):
        if at and day != points[at - 1][0] + 1:
            run = []
            runs.append(run)
        run.append(f"{_x(report, day + 0.5):.1f},{y:.1f}")
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    for run in runs:
        if len(run) > 1:
            yield (
                f'<polyline points="{" ".join(run)}" fill="none" '
                f'stroke="var(--{arm})" stroke-width="2"{dashed}/>'
            )
    for day, y in points:
        x, size = _x(report, day + 0.5), 2.5 if dash else 3.5
        yield (
            f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size}" '
            f'height="{2 * size}" fill="var(--{arm})"/>'
            if arm == "canary"
            else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="var(--{arm})"/>'
        )


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>'
        f"{escape(text)}</text>"
    )
