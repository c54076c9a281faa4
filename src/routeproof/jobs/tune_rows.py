"""A point of a draft-length search as rows: one for each load. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from routeproof.gates.facts import LoadRow, RatioRow, Row
from routeproof.jobs.gathering.gathered import Gathered
from routeproof.jobs.gathering.stages import accepted_at, speed_of
from routeproof.jobs.tune_choice import Chosen
from routeproof.metrics.acceptance import Derived
from routeproof.reports.judgement import Judgement


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to speculate: a draft length and values of further options."""

    draft_tokens: int
    options: tuple[tuple[str, str], ...] = ()

    def words(self) -> str | None:
        """The options in words, ``None`` where none is varied."""
        return " ".join(f"{name}={value}" for name, value in self.options) or None

    @classmethod
    def of(cls, row: Row) -> "Setting":
        """The setting that a row is of."""
        words = str(row.get("options") or "").split()
        options = [(n, v) for n, _, v in (word.partition("=") for word in words)]
        return cls(int(row["draft_tokens"] or 0), tuple(options))

    def name(self) -> str:
        """Of its run folder.

        Example:
            >>> Setting(4, (("num_steps", "3"),)).name()
            'k4-num_steps3'
        """
        parts = (f"{name}{re.sub('[^A-Za-z0-9.]', '_', v)}" for name, v in self.options)
        return "-".join((f"k{self.draft_tokens}", *parts))


def rows_of(
    setting: Setting, found: Judgement, run: Gathered, *, has_single: bool
) -> list[Row]:
    """The rows of one point: one for each load.

    Args:
        setting: Of the point.
        found: Its judgement.
        run: Its run.
        has_single: A single stream is one of the loads; it is timed on the cases.
    """
    stages = [("sweep", found.evidence.speed)]
    if has_single:
        stages.insert(0, ("quality", speed_of(run, "quality")))
    return [
        _row(
            setting,
            found,
            (load, speed.ratios),
            accepted_at(run, load.phase, load.level),
        )
        for phase, speed in stages
        for load in speed.loads
        if load.arm == "candidate" and load.phase == phase
    ]


def _row(
    setting: Setting,
    found: Judgement,
    at: tuple[LoadRow, Sequence[RatioRow]],
    accepted: Derived,
) -> Row:
    further: Row = {} if setting.words() is None else {"options": setting.words()}
    evidence = found.evidence
    equal = next((e for e in evidence.quality.equality if e.pair == "candidate"), None)
    sizes = [m for m in evidence.stability.memory if m.name.endswith("_bytes")]
    load, ratios = at
    ratio = _ratio(ratios, load)
    interval = ratio.gain_interval if ratio else None
    return {
        "draft_tokens": setting.draft_tokens,
        **further,
        "concurrency": load.asked,
        "gain": ratio.gain if ratio else None,
        "gain_low": interval.low if interval else None,
        "gain_high": interval.high if interval else None,
        "correct_goodput_per_s": load.correct_goodput_per_s,
        "output_tokens_per_s": load.output_tokens_per_s,
        "tokens_per_pass": accepted.tokens_per_pass,
        "acceptance_rate": accepted.acceptance_rate,
        "equal_share": equal.equal / equal.pairs if equal and equal.pairs else None,
        "correctness": found.gate("correctness").status.value,
        "memory_ratio": sizes[0].peak.ratio() if sizes else None,
    }


def telling(rows: Sequence[Row]) -> Setting | None:
    """The setting whose page to look at: a pick, else that of the largest gain."""
    known = [row for row in rows if isinstance(row.get("gain"), int | float)]
    if not known:
        return None
    best = max(known, key=lambda r: (bool(r.get("chosen")), float(r["gain"] or 0.0)))
    return Setting.of(best)


def _ratio(ratios: Sequence[RatioRow], load: LoadRow) -> RatioRow | None:
    return next(
        (
            r
            for r in ratios
            if r.metric == "output_token_throughput"
            and (r.phase, r.level) == (load.phase, load.level)
        ),
        None,
    )


def marked(rows: Sequence[Row], chosen: Sequence[Chosen]) -> tuple[Row, ...]:
    """The same rows, each with whether it was chosen for its load."""
    picked = {(c.concurrency, c.draft_tokens, c.options) for c in chosen}
    return tuple(
        {
            **row,
            "chosen": (row["concurrency"], row["draft_tokens"], row.get("options"))
            in picked,
        }
        for row in rows
    )
