"""Which point of a draft-length search wins, and when going on is pointless. Pure."""

import itertools
from collections.abc import Sequence

import msgspec

from routeproof.gates.facts import Row

WORSE = 2
"""Lengths that must be surely worse than the best, on one side of it, before those
farther away are given up. Two, since acceptance need not fall steadily."""


def coarse_first(lengths: Sequence[int]) -> tuple[int, ...]:
    """The lengths in an order that spans them early: the ends, then halves of gaps.

    A search that is cut short has then seen the whole range.

    Example:
        >>> coarse_first([1, 2, 3, 4, 5, 6, 7, 8])
        (1, 8, 4, 6, 2, 3, 5, 7)
    """
    given = list(dict.fromkeys(lengths))
    if len(given) < 3:
        return tuple(given)
    order = [0, len(given) - 1]
    while len(order) < len(given):
        known = sorted(order)
        gaps = [(b - a, -a, a + (b - a) // 2) for a, b in itertools.pairwise(known)]
        order.append(max(gaps)[2])
    return tuple(given[place] for place in order)


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


def is_hopeless(
    rows: Sequence[Row], length: int, options: str | None = None
) -> str | None:
    """Why a draft length need not be run with these options, or ``None``.

    At every load two lengths on one side of the best are surely worse than it (the
    upper limit of their gain lies under the lower limit of the best gain), and this
    one lies farther from the best than the nearer of them.
    """
    rows = [row for row in rows if row.get("options") == options]
    loads = list(dict.fromkeys(row["concurrency"] for row in rows))
    worse: set[int] = set()
    for load in loads:
        found = _worse_before(length, [r for r in rows if r["concurrency"] == load])
        if not found:
            return None
        worse |= set(found)
    if not worse:
        return None
    named = " and ".join(str(each) for each in sorted(worse))
    return f"{named} drafts are surely worse than the best, and {length} lie beyond"


def _worse_before(length: int, rows: Sequence[Row]) -> list[int]:
    """Surely worse lengths between the best and this one; empty if too few."""
    known = [
        (length_of, low, high)
        for row in rows
        if isinstance(length_of := row["draft_tokens"], int)
        and (low := _number(row, "gain_low")) is not None
        and (high := _number(row, "gain_high")) is not None
    ]
    if not known:
        return []
    best, floor, _ = max(known, key=lambda each: each[1])
    sides = (
        sorted(k for k, _, high in known if high < floor and k > best),
        sorted((k for k, _, high in known if high < floor and k < best), reverse=True),
    )
    for side, is_beyond in zip(sides, (length.__gt__, length.__lt__), strict=True):
        if len(side) >= WORSE and is_beyond(side[0]):
            return side[:WORSE]
    return []


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else None
