"""The verdict on one screen of a terminal, readable without colour."""

from collections import Counter
from collections.abc import Iterator

import click

from routeproof.gates.facts import Flip
from routeproof.gates.result import Check, GateResult, Status
from routeproof.reports import figures
from routeproof.reports.judgement import Judgement
from routeproof.routes.inventory import RouteDiff
from routeproof.verdict import Decision

WIDTH = 100
_LABEL = 13
_NAME = 30
_REASON_LINES = 2
_MAX_CHANGES = 5
_MAX_QUALITY = 6
_MAX_SPEED = 4
_MAX_REASONS = 3
_MAX_NOTES = 2
_SHOWN = 24
"""Characters of an example answer that are printed."""

_COLOUR: dict[str, str] = {
    Status.PASSED: "green",
    Status.FAILED: "red",
    Status.INCONCLUSIVE: "yellow",
    Status.NOT_MEASURED: "bright_black",
    Decision.ADOPT: "green",
    Decision.PILOT: "cyan",
    Decision.WAIT: "yellow",
    Decision.AVOID: "red",
    Decision.NONE: "magenta",
}

_PLAN = {
    "lossless": "spot check",
    "lossy": "full evaluation",
    "unknown": "full evaluation",
    "invalid": "no verdict possible",
}

_ORDER = (Status.FAILED, Status.INCONCLUSIVE, Status.NOT_MEASURED, Status.PASSED)


def render(
    judgement: Judgement,
    *,
    colour: bool = False,
    width: int = WIDTH,
    report: str | None = None,
) -> str:
    """The block of text that ends a run.

    Args:
        judgement: What was decided, on which numbers.
        colour: Paint statuses with ANSI codes; the words say the same without.
        width: Columns; longer sentences are wrapped, tables are kept.
        report: Path of the HTML report to point at.

    Returns:
        At most some 30 lines, ending with a line feed.
    """
    pen = _Pen(colour, width)
    blocks = (
        _changes(judgement.evidence.routes, pen),
        _quality(judgement, pen),
        _speed(judgement, pen),
        _acceptance(judgement, pen),
        _gate_line(judgement.gates, pen),
        _verdict(judgement, pen),
        _next(judgement, report, pen),
    )
    return "\n".join(line for block in blocks for line in block) + "\n"


class _Pen:
    """How text is set: whether colours are used, and how wide a line may be."""

    def __init__(self, colour: bool, width: int) -> None:
        self.colour = colour
        self.width = max(width, 60)

    def paint(self, text: str, kind: str, *, bold: bool = False) -> str:
        if not self.colour:
            return text
        return click.style(text, fg=_COLOUR[kind], bold=bold)

    def labelled(self, label: str, sentences: list[str]) -> Iterator[str]:
        """Sentences under one label, wrapped, one below the other."""
        for index, sentence in enumerate(sentences):
            for turn, line in enumerate(_few(sentence, self.width - _LABEL)):
                shown = label if index == 0 and turn == 0 else ""
                yield f"{shown:<{_LABEL}}{line}"


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def _changes(routes: RouteDiff | None, pen: _Pen) -> Iterator[str]:
    if routes is None:
        yield from pen.labelled("route diff", ["the routes were not written down"])
        return
    if not routes.changes:
        yield from pen.labelled("route diff", ["none: both routes are the same"])
        return
    rows = [
        (
            change.field,
            f"{change.baseline or 'none'} -> {change.candidate or 'none'}",
            change.change_class + ("" if change.intended else ", not declared"),
        )
        for change in routes.changes[:_MAX_CHANGES]
    ]
    left = max(len(field) for field, _, _ in rows)
    room = max(20, pen.width - _LABEL - left - 2 - 30)
    middle = min(room, max(len(values) for _, values, _ in rows))
    for index, (field, values, change_class) in enumerate(rows):
        label = "route diff" if index == 0 else ""
        told = _cut(values, middle)
        yield f"{label:<{_LABEL}}{field:<{left}}  {told:<{middle}}  {change_class}"
    hidden = len(routes.changes) - len(rows)
    more = f"{hidden} more; " if hidden else ""
    plan = f"{more}worst class {routes.change_class}: {_PLAN[routes.change_class]}"
    yield from pen.labelled("", [plan])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _cut_inside(text: str, width: int) -> str:
    """Shortened in the middle: names that begin alike still differ at their end."""
    if len(text) <= width:
        return text
    tail = (width - 1) * 3 // 5
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def _few(text: str, width: int) -> list[str]:
    """A sentence on at most two lines; the whole of it is in the other reports."""
    lines = _wrapped(text, width)
    if len(lines) <= _REASON_LINES:
        return lines
    last = lines[_REASON_LINES - 1]
    return [*lines[: _REASON_LINES - 1], f"{last[: width - 2]} …"]


def _picked(checks: tuple[Check, ...], most: int) -> tuple[list[Check], list[Check]]:
    """The checks worth a line, what decides first, and those left out.

    A fact has no number to show, so it is worth a line only when it does not hold.
    """
    measured = [c for c in checks if c.kind != "fact" or c.status is Status.FAILED]
    measured.sort(key=_weight)
    return measured[:most], measured[most:]


def _weight(check: Check) -> tuple[int, bool]:
    """Failed, then required and open, then required with a limit; gain leads."""
    if check.status is Status.FAILED:
        place = 0 if check.required else 1
    elif check.status is not Status.PASSED:
        place = 2 if check.required else 4
    else:
        place = 3 if check.required and check.limit is not None else 5
    return place, not check.name.startswith("gain")


def _quality(judgement: Judgement, pen: _Pen) -> Iterator[str]:
    gate = _gate(judgement, "correctness")
    if gate is None:
        return
    yield from _table("quality", gate, _MAX_QUALITY, pen)


def _speed(judgement: Judgement, pen: _Pen) -> Iterator[str]:
    gate = _gate(judgement, "latency")
    if gate is None:
        return
    if gate.status is Status.NOT_MEASURED:
        yield from pen.labelled("performance", [f"not judged: {gate.reason}"])
        return
    yield from _table("performance", gate, _MAX_SPEED, pen)


def _acceptance(judgement: Judgement, pen: _Pen) -> Iterator[str]:
    gate = _gate(judgement, "acceptance")
    routes = judgement.evidence.routes
    if gate is not None and routes is not None and routes.is_speculative:
        yield from pen.labelled("acceptance", [gate.reason])


def _table(label: str, gate: GateResult, most: int, pen: _Pen) -> Iterator[str]:
    checks, hidden = _picked(gate.checks, most)
    if not checks:
        yield from pen.labelled(label, [gate.reason])
        return
    columns = [_cells(check) for check in checks]
    widths = [max(len(row[i]) for row in columns) for i in range(len(columns[0]))]
    status = max(len(figures.STATUS_WORD[check.status]) for check in checks)
    spare = pen.width - _LABEL - sum(widths[1:]) - 2 * len(widths) - status
    widths[0] = min(widths[0], max(spare, _NAME))
    for index, (check, cells) in enumerate(zip(checks, columns, strict=True)):
        text = "  ".join(
            f"{_cut_inside(cell, width):<{width}}"
            for cell, width in zip(cells, widths, strict=True)
            if width
        )
        word = pen.paint(figures.STATUS_WORD[check.status], check.status)
        yield f"{label if index == 0 else '':<{_LABEL}}{text}  {word}"
    if hidden:
        count = Counter(figures.STATUS_WORD[check.status].lower() for check in hidden)
        told = ", ".join(f"{n} {word}" for word, n in count.items())
        yield from pen.labelled("", [f"{len(hidden)} more in the report: {told}"])


def _cells(check: Check) -> tuple[str, ...]:
    if check.kind == "fact":
        return (figures.question(check.name), _cut(check.reason, 44), "", "")
    measured = " ".join(
        part
        for part in (
            figures.estimate(check),
            figures.bounds(check.interval, check.kind, check.unit),
        )
        if part
    )
    return (
        figures.question(check.name),
        measured,
        figures.limit(check),
        figures.amount(check),
    )


def _gate(judgement: Judgement, name: str) -> GateResult | None:
    return next((g for g in judgement.gates if g.gate == name), None)


def _gate_line(gates: tuple[GateResult, ...], pen: _Pen) -> Iterator[str]:
    words: list[str] = []
    for status in (*_ORDER[:3], Status.PASSED):
        names = [g.gate.replace("_", " + ") for g in gates if g.status is status]
        if names:
            word = figures.STATUS_WORD[status].lower()
            words.append(f"{word}: {', '.join(names)}")
    yield from pen.labelled("gates", words)


def _verdict(judgement: Judgement, pen: _Pen) -> Iterator[str]:
    verdict = judgement.verdict
    word = figures.DECISION_WORD[verdict.decision]
    reasons = list(verdict.reasons[:_MAX_REASONS])
    if judgement.worst is not None:
        worst = judgement.worst
        place = figures.question(worst.question)
        reasons.append(f"worst slice: {place}: {worst.reason}")
        reasons += [_pair(flip) for flip in worst.examples]
    lines = [line for text in reasons for line in _few(text, pen.width - 29)]
    painted = pen.paint(f"{word:<16}", verdict.decision, bold=True)
    yield ""
    yield f"{'verdict':<{_LABEL}}{painted}{lines[0] if lines else ''}".rstrip()
    for line in lines[1:]:
        yield f"{'':<{_LABEL + 16}}{line}"


def _pair(flip: Flip) -> str:
    """Both answers of an example around the place where they part."""
    at = max(0, (flip.first_divergence or 0) - _SHOWN // 3)

    def shown(text: str) -> str:
        part = " ".join(text[at : at + _SHOWN].split())
        return f"{'...' if at else ''}{part}" or "nothing"

    before, after = shown(flip.baseline_text), shown(flip.candidate_text)
    return f"{flip.case_id}: '{before}' became '{after}'"


def _is_told(text: str, told: str) -> bool:
    """Whether a sentence, its question left out, stands among the reasons already."""
    return text.partition(": ")[2] in told if ": " in text else text in told


def _next(judgement: Judgement, report: str | None, pen: _Pen) -> Iterator[str]:
    verdict = judgement.verdict
    if verdict.decision is not Decision.ADOPT:
        told = " ".join(verdict.reasons[:_MAX_REASONS])
        fresh = [text for text in verdict.would_change if not _is_told(text, told)]
        yield from pen.labelled("to change it", list(map(figures.told, fresh[:2])))
    hints = [hint for gate in judgement.gates for hint in gate.hints]
    yield from pen.labelled("look first", hints[:1])
    yield from pen.labelled("note", list(judgement.evidence.notes[:_MAX_NOTES]))
    if report:
        yield from pen.labelled("report", [report])
