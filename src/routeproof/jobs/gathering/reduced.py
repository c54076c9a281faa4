"""Records to a few numbers per request, part by part, on two processors if it pays.

Reducing parts is most of the work of judging a large run, and each part stands for
itself. Half of them are reduced by a second process of the same interpreter, which
leaves its result in a temporary file; the parts keep their order, so the judgement is
the same with one process or two.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from routeproof.metrics.degenerate import degenerate_column
from routeproof.metrics.histogram import LogHistogram
from routeproof.metrics.honoured import (
    Parameters,
    asked_parameters,
    honoured_columns,
)
from routeproof.metrics.per_request import (
    COLUMNS,
    chunk_gaps,
    per_request,
    with_served,
)
from routeproof.metrics.stages import Stage, stages_of
from routeproof.records.columns import Records
from routeproof.records.store import RunFolder
from routeproof.workloads.cases import read_cases


@dataclass(frozen=True, slots=True)
class Split:
    """When a second process is started.

    Attributes:
        worth_bytes: Stored records from which it saves more than its start costs.
        processors: How many there are; counted when ``None``.
    """

    worth_bytes: int = 64_000_000
    processors: int | None = None

    def pays(self, parts: Sequence[Path]) -> bool:
        """Whether it pays for these parts."""
        size = sum(path.stat().st_size for path in parts)
        enough = len(parts) >= 2 and size >= self.worth_bytes
        return enough and bool(sys.executable) and self._count() >= 2

    def _count(self) -> int:
        if self.processors is not None:
            return self.processors
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:
            return os.cpu_count() or 1


_OTHER = (
    "import sys; from routeproof.jobs.gathering.reduced import main; main(sys.argv[1:])"
)


class Reduced(NamedTuple):
    """One part: its requests as metric columns, and its chunk gaps by stage."""

    requests: Records
    gaps: tuple[tuple[Stage, LogHistogram], ...]


def reduced_parts(folder: RunFolder, split: Split | None = None) -> Iterator[Reduced]:
    """Every part of a run, reduced, in the order of the parts.

    Raises:
        StoredRunError: A part or the cases cannot be read.
    """
    paths = folder.part_paths()
    if not (split or Split()).pays(paths):
        yield from _reduced(folder, paths)
        return
    middle = len(paths) // 2
    with tempfile.TemporaryDirectory(prefix="routeproof-judge-") as scratch:
        out = Path(scratch) / "reduced"
        command = [sys.executable, "-c", _OTHER, folder.path, middle, out]
        silent = subprocess.DEVNULL
        with subprocess.Popen(
            [str(word) for word in command], stdout=silent, stderr=silent
        ) as other:
            try:
                yield from _reduced(folder, paths[:middle])
            finally:
                code = other.wait()
        if code == 0:
            yield from _loaded(out, len(paths) - middle)
        else:
            # What it stumbled over is found, and said, here.
            yield from _reduced(folder, paths[middle:])


def _reduced(folder: RunFolder, paths: Sequence[Path]) -> Iterator[Reduced]:
    exists = folder.cases_path.exists()
    asked = asked_parameters(read_cases(folder.cases_path) if exists else ())
    wanted = {*COLUMNS, *(("choices", "logprobs") if asked else ())}
    for path in paths:
        yield _of_part(folder.part(path, only=wanted), asked)


def _of_part(stored: Records, asked: dict[str, Parameters]) -> Reduced:
    part = with_served(stored)
    reduced = per_request(part)
    further = {
        "is_degenerate": degenerate_column(part),
        **honoured_columns(part, asked),
    }
    stages, groups = stages_of(part)
    gaps = zip(stages, chunk_gaps(part, groups, len(stages)), strict=True)
    numbers = {**reduced.numbers, **further}
    return Reduced(Records(reduced.n, numbers, reduced.texts), tuple(gaps))


def _loaded(path: Path, count: int) -> Iterator[Reduced]:
    with path.open("rb") as file:
        for _ in range(count):
            found: Reduced = pickle.load(file)
            yield found


def _store(parts: Iterable[Reduced], path: Path) -> None:
    with path.open("wb") as file:
        for part in parts:
            pickle.dump(part, file, protocol=pickle.HIGHEST_PROTOCOL)


def main(arguments: Sequence[str]) -> None:
    """Reduce the parts of a folder from one on, into a file."""
    folder, first, out = arguments
    opened = RunFolder.open(Path(folder))
    _store(_reduced(opened, opened.part_paths()[int(first) :]), Path(out))
