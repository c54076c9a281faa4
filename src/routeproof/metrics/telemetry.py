"""Samples of engine and process as series by arm and name."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from routeproof.records.columns import Floats, Records

TREND_BINS = 10


@dataclass(frozen=True, slots=True)
class Series:
    """One sampled quantity of one arm, in order of time.

    Attributes:
        at_s: On the run's clock, shape ``(n,)``.
        values: Same shape.
    """

    at_s: Floats
    values: Floats

    def between(self, start_s: float, end_s: float) -> "Series":
        """The samples of a stretch of time, ends included."""
        keep = (self.at_s >= start_s) & (self.at_s <= end_s)
        return Series(self.at_s[keep], self.values[keep])

    def peak(self) -> float | None:
        """Largest value."""
        return float(self.values.max()) if self.values.size else None

    def last(self) -> float | None:
        """Latest value."""
        return float(self.values[-1]) if self.values.size else None

    def increase(self) -> float | None:
        """Growth of a counter: falls are restarts and count from zero again."""
        if self.values.size < 2:
            return None
        steps = np.diff(self.values)
        return float(np.where(steps >= 0, steps, self.values[1:]).sum())

    def resets(self) -> int:
        """How often a counter fell."""
        return int((np.diff(self.values) < 0).sum())

    def changes(self) -> int:
        """How often a constant, such as a start time, changed."""
        return int((np.diff(self.values) != 0).sum())


@dataclass(frozen=True, slots=True)
class Slope:
    """Growth per hour with the lower limit of its interval."""

    per_hour: float
    low: float


def slope(series: Series, *, alpha: float) -> Slope | None:
    """Linear trend of the medians of ten equal stretches of time.

    Medians of stretches, because neighbouring samples are far from independent and
    single peaks are no trend. The lower limit is one-sided at ``alpha``, by Student's
    t with the degrees of freedom of the medians.

    Returns:
        ``None`` with fewer than four stretches that hold a sample.
    """
    if series.at_s.size < 4 or series.at_s[-1] <= series.at_s[0]:
        return None
    start, end = float(series.at_s[0]), float(series.at_s[-1])
    place = ((series.at_s - start) / (end - start) * TREND_BINS).astype(np.int64)
    place = np.minimum(place, TREND_BINS - 1)
    filled = np.unique(place)
    if filled.size < 4:
        return None
    y = np.array([float(np.median(series.values[place == each])) for each in filled])
    x = np.array([float(np.median(series.at_s[place == each])) for each in filled])
    x = (x - x.mean()) / 3600
    spread = float((x**2).sum())
    per_hour = float((x * (y - y.mean())).sum()) / spread
    rest = y - y.mean() - per_hour * x
    freedom = filled.size - 2
    error = float(np.sqrt((rest**2).sum() / freedom / spread))
    return Slope(per_hour, per_hour - float(stdtrit(freedom, 1 - alpha)) * error)


def series_of(parts: Iterable[Records]) -> dict[tuple[str, str], Series]:
    """Stored samples by (arm, name), sorted by time."""
    at: list[Floats] = []
    values: list[Floats] = []
    names: list[NDArray[np.object_]] = []
    for part in parts:
        at.append(part.number("at_s").values)
        values.append(part.number("value").values)
        pairs = np.empty(part.n, dtype=object)
        columns = (part.text("arm"), part.text("name"))
        pairs[:] = list(zip(*columns, strict=True))
        names.append(pairs)
    if not at:
        return {}
    times, numbers = np.concatenate(at), np.concatenate(values)
    rows: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(np.concatenate(names).tolist()):
        rows.setdefault(pair, []).append(row)
    found = {}
    for pair, where in sorted(rows.items()):
        order = np.array(where)[np.argsort(times[where], kind="stable")]
        found[pair] = Series(times[order], numbers[order])
    return found
