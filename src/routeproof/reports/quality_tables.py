"""Tables of the quality section: equal texts, judges, sampled answers."""

from collections.abc import Sequence

from routeproof.gates.evidence import Quality
from routeproof.gates.facts import Divergence, EqualityRow, JudgeRow, Row
from routeproof.reports import figures
from routeproof.reports.tables import Titled, number_table, text_table


def compared_texts(quality: Quality) -> list[Titled]:
    """Greedy texts, sampled answers and judges, as far as there are any."""
    return [
        *_equality((*quality.equality, *quality.equality_under_load)),
        *_sampled(quality.sampled),
        *_judges(quality.judges),
    ]


def _equality(rows: Sequence[EqualityRow]) -> list[Titled]:
    if not rows:
        return []
    head = ("compared with the baseline", "at", "pairs", "same text", "near ties",
            "real", "cannot be told")  # fmt: skip
    table = number_table(
        head,
        [
            (
                "candidate" if row.pair == "candidate" else "baseline again (control)",
                f"{row.phase} {row.level}".strip() or "judged phase",
                f"{row.pairs:,}",
                f"{row.equal:,}",
                *(_count(n) for n in (row.near_ties, row.real, row.cannot_tell)),
            )
            for row in rows
        ],
        words=2,
    )
    return [Titled("Same text for the same greedy request", table), *_parted(rows)]


KINDS = {"near_tie": "near tie", "real": "real", "unknown": "cannot be told"}


def _parted(rows: Sequence[EqualityRow]) -> list[Titled]:
    """Where the candidate's texts leave the baseline's in the judged phase."""
    shown = [
        each
        for row in rows
        if row.pair == "candidate" and not row.level
        for each in row.divergences
    ]
    if not shown:
        return []
    head = ("case", "after", "baseline says", "candidate says", "nats below", "kind")
    table = number_table(
        head,
        [
            (
                each.case_id,
                f"...{each.before}" if each.before else "the beginning",
                repr(each.baseline),
                repr(each.other),
                _below(each),
                KINDS[each.kind],
            )
            for each in shown
        ],
        words=4,
        last_is_words=True,
    )
    return [Titled("Where greedy texts part, by the baseline's own numbers", table)]


def _below(each: Divergence) -> str:
    if each.nats is None:
        return figures.UNKNOWN
    if not each.is_exact:
        return f"over {each.nats:.3f}"
    steps = each.nats / each.step_nats if each.step_nats else None
    beside = "" if steps is None else f" ({steps:.0f} x {each.step_nats:g})"
    return f"{each.nats:.3f}{beside}"


def _sampled(rows: Sequence[Row]) -> list[Titled]:
    if not rows:
        return []
    head = ("test", "p", "p of the control", "prompts", "answers", "power")
    table = number_table(
        head,
        [
            (
                str(row["test"]).replace("_", " "),
                *(_number(row.get(name)) for name in ("p_value", "control_p_value")),
                *(_number(row.get(name)) for name in ("prompts", "answers")),
                str(row.get("power") or figures.UNKNOWN),
            )
            for row in rows
        ],
        words=1,
        last_is_words=True,
    )
    return [Titled("Sampled answers, one distribution?", table)]


def _judges(rows: Sequence[JudgeRow]) -> list[Titled]:
    if not rows:
        return []
    head = ("score", "by", "judged", "complete", "mean", "order changed",
            "at equal length", "placebo", "labels", "kappa", "may decide")  # fmt: skip
    table = text_table(
        head,
        [
            (
                row.scorer.replace("_", " "),
                row.who,
                f"{row.n:,}",
                _share(row.completeness_share),
                _number(row.mean),
                _share(row.inconsistency_share),
                _number(row.length_adjusted),
                _number(row.placebo_mean),
                f"{row.labels:,}",
                _number(row.kappa),
                "no: " + "; ".join(row.problems) if row.problems else "yes",
            )
            for row in rows
        ],
    )
    return [Titled("Judges and people", table)]


def _count(n: int | None) -> str:
    return figures.UNKNOWN if n is None else f"{n:,}"


def _number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return figures.UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _share(value: float | None) -> str:
    return figures.UNKNOWN if value is None else f"{value:.1%}"
