"""All requests of a run in memory, a few numbers each."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from routeproof.records.columns import Bools, Column, Records
from routeproof.records.outcome import SERVED

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Labels:
    """A text column as numbers into a list of names; -1 is unknown.

    Attributes:
        codes: Shape ``(n,)``.
        names: The distinct texts, in the order in which they came.
    """

    codes: Codes
    names: tuple[str, ...]

    def equal(self, name: str) -> Bools:
        """True where the text is ``name``, shape ``(n,)``."""
        if name not in self.names:
            return np.zeros(self.codes.size, dtype=np.bool_)
        found: Bools = self.codes == self.names.index(name)
        return found

    def of(self, index: int) -> str | None:
        """The text of one row."""
        code = int(self.codes[index])
        return None if code < 0 else self.names[code]


@dataclass(frozen=True, slots=True)
class Requests:
    """Numbers and labels per request, as ``per_request`` made them.

    Attributes:
        partners: For an arm, the row of it that belongs to each row of the baseline,
            -1 where there is none; see `metrics.pairs.with_partners`.
    """

    n: int
    numbers: Mapping[str, Column] = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)
    partners: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def number(self, name: str) -> Column:
        """One number per request; all unknown when the run does not have it."""
        found = self.numbers.get(name)
        if found is not None:
            return found
        return Column(np.zeros(self.n), np.zeros(self.n, dtype=np.bool_))

    def label(self, name: str) -> Labels:
        """One text per request; all unknown when the run does not have it."""
        found = self.labels.get(name)
        return found or Labels(np.full(self.n, -1, dtype=np.int32), ())

    def at(self, **wanted: str) -> Bools:
        """True where every named label has the given text, shape ``(n,)``."""
        keep = np.ones(self.n, dtype=np.bool_)
        for name, value in wanted.items():
            keep &= self.label(name).equal(value)
        return keep

    def served(self) -> Bools:
        """True where an answer came, shape ``(n,)``."""
        outcome = self.label("outcome")
        good = np.array([name in SERVED for name in outcome.names] + [False])
        found: Bools = good[outcome.codes]
        return found

    def where(self, keep: Bools, only: Collection[str] | None = None) -> "Requests":
        """The requests where ``keep`` is true, order kept.

        Args:
            keep: Shape ``(n,)``.
            only: Number columns to carry over; all when ``None``.
        """
        index = np.flatnonzero(keep)
        return Requests(
            n=index.size,
            numbers={
                k: Column(c.values[index], c.known[index])
                for k, c in self.numbers.items()
                if only is None or k in only
            },
            labels={k: Labels(v.codes[index], v.names) for k, v in self.labels.items()},
        )

    def levels(self) -> tuple[tuple[str, str], ...]:
        """(phase, level) pairs that occur, stage by stage, low load first."""
        phase, level = self.label("phase"), self.label("level")
        known = (phase.codes >= 0) & (level.codes >= 0)
        width = len(level.names) or 1
        cells = phase.codes[known].astype(np.int64) * width + level.codes[known]
        seen = np.flatnonzero(np.bincount(cells)).tolist()
        named = [(phase.names[c // width], level.names[c % width]) for c in seen]
        return tuple(sorted(named, key=_stage_order))


_PHASES = ("warmup", "probe", "quality", "latency", "sweep", "soak")


def _stage_order(stage: tuple[str, str]) -> tuple[int, float, str]:
    phase, level = stage
    place = _PHASES.index(phase) if phase in _PHASES else len(_PHASES)
    return place, asked_load(level)[1] or 0.0, level


def asked_load(level: str) -> tuple[str, float | None]:
    """Kind and size of a level by its name: ``c16`` concurrency, ``r4.0`` a rate."""
    kind = "request_rate" if level.startswith("r") else "concurrency"
    try:
        return kind, float(level[1:])
    except ValueError:
        return kind, None


def gather(parts: Iterable[Records]) -> Requests:
    """Parts made by ``per_request``, put together.

    Texts are coded part by part, and columns joined one at a time, so that little
    more than the result is ever held.
    """
    sizes: list[int] = []
    numbers: list[dict[str, Column]] = []
    places: dict[str, dict[str, int]] = {}
    codes: list[dict[str, Codes]] = []
    for part in parts:
        sizes.append(part.n)
        numbers.append(dict(part.numbers))
        codes.append(
            {k: _coded(v, places.setdefault(k, {})) for k, v in part.texts.items()}
        )
    names = list(dict.fromkeys(name for part in numbers for name in part))
    names = [name for name in names if _any_known(name, numbers)]
    return Requests(
        n=sum(sizes),
        numbers={name: _joined(name, numbers, sizes) for name in names},
        labels={
            name: Labels(_joined_codes(name, codes, sizes), tuple(found))
            for name, found in places.items()
        },
    )


def _any_known(name: str, parts: list[dict[str, Column]]) -> bool:
    """A column in which nothing is known is left out: absent means the same."""
    return any(part[name].known.any() for part in parts if name in part)


def _joined(name: str, parts: list[dict[str, Column]], sizes: list[int]) -> Column:
    unknown = (Column(np.zeros(n), np.zeros(n, dtype=np.bool_)) for n in sizes)
    columns = [part.pop(name, none) for part, none in zip(parts, unknown, strict=True)]
    return Column(
        np.concatenate([column.values for column in columns]),
        np.concatenate([column.known for column in columns]),
    )


def _joined_codes(name: str, parts: list[dict[str, Codes]], sizes: list[int]) -> Codes:
    columns = [
        part.pop(name, np.full(n, -1, dtype=np.int32))
        for part, n in zip(parts, sizes, strict=True)
    ]
    return np.concatenate(columns)


def _coded(texts: NDArray[np.object_], places: dict[str, int]) -> Codes:
    listed = texts.tolist()
    for text in dict.fromkeys(listed):
        if text is not None:
            places.setdefault(text, len(places))
    lookup: dict[str | None, int] = {None: -1}
    lookup.update(places.items())
    return np.fromiter(map(lookup.__getitem__, listed), np.int32, len(listed))


def code(texts: NDArray[np.object_]) -> Labels:
    """A text column as codes."""
    places: dict[str, int] = {}
    codes = _coded(texts, places)
    return Labels(codes, tuple(places))
