"""Which point of a draft-length search wins, and when going on is pointless. Pure."""

from collections.abc import Sequence

import msgspec

from routeproof.gates.facts import Row

WORSE_IN_A_ROW = 2
"""Points that must be surely worse than the best, one after the other, before longer
drafts are given up. Two, since acceptance need not fall steadily with the length."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pick for one load.

    Attributes:
        draft_tokens: ``None``: no point has a proven gain, leave speculation off.
        options: Further options of the pick, where the search varied any.
        by: What it was picked on.
    """

    concurrency: float | None
    draft_tokens: int | None
    by: str
    why: str
    options: str | None = None


def choose(rows: Sequence[Row]) -> tuple[Chosen, ...]:
    """The best draft length for each load.

    Among the points whose correctness did not fail and whose gain is proven (the
    interval lies above 1), the one with the most correct answers inside the SLO per
    second; where that is unknown, the largest gain.
    """
    loads = list(dict.fromkeys(row["concurrency"] for row in rows))
    return tuple(
        _choose(load, [r for r in rows if r["concurrency"] == load]) for load in loads
    )


def _choose(load: object, rows: Sequence[Row]) -> Chosen:
    concurrency = float(load) if isinstance(load, int | float) else None
    sound = [r for r in rows if r["correctness"] != "failed"]
    proven = [
        r for r in sound if (low := _number(r, "gain_low")) is not None and low > 1
    ]
    if not proven:
        best = max((_number(r, "gain") or 0.0 for r in sound), default=0.0)
        return Chosen(
            concurrency=concurrency,
            draft_tokens=None,
            by="gain",
            why=f"no draft length has a proven gain (best seen {best:.2f}x)",
        )
    by = (
        "correct_goodput_per_s"
        if all(_number(r, "correct_goodput_per_s") is not None for r in proven)
        else "gain"
    )
    best_row = max(proven, key=lambda r: _number(r, by) or 0.0)
    length = best_row["draft_tokens"]
    assert isinstance(length, int)
    return Chosen(
        concurrency=concurrency,
        draft_tokens=length,
        options=str(best_row["options"]) if best_row.get("options") else None,
        by=by,
        why=f"{_number(best_row, 'gain'):.2f}x "
        f"[{_number(best_row, 'gain_low'):.2f}, {_number(best_row, 'gain_high'):.2f}]",
    )


def is_hopeless(rows: Sequence[Row], options: str | None = None) -> str | None:
    """Why further draft lengths need not be run with these options, or ``None``.

    The last two lengths each lie, at every load, surely below the best one: the upper
    limit of their gain under the lower limit of the best gain.
    """
    rows = [row for row in rows if row.get("options") == options]
    lengths = list(dict.fromkeys(row["draft_tokens"] for row in rows))
    if len(lengths) <= WORSE_IN_A_ROW:
        return None
    loads = {row["concurrency"] for row in rows}
    last = lengths[-WORSE_IN_A_ROW:]
    for load in loads:
        at_load = [r for r in rows if r["concurrency"] == load]
        best = max((_number(r, "gain_low") or 0.0 for r in at_load), default=0.0)
        for row in at_load:
            high = _number(row, "gain_high")
            if row["draft_tokens"] in last and (high is None or high >= best):
                return None
    return f"lengths {last} are surely worse than the best at every load"


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else None
