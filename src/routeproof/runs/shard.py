"""A part of the load: which requests of a block are this process's own.

Every process builds the same plan from the same seed and takes its share of each
block, so nothing has to be handed out while the clock runs. Blocks begin together: a
barrier in the run folder lets the processes wait for each other, which works wherever
they share that folder.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from routeproof.errors import StoredRunError
from routeproof.runs.blocks import Block, Planned

_POLL_S = 0.005
_LEAD_S = 0.05
"""Between the last arrival at a barrier and the common start."""


class Barrier(Protocol):
    """Lets all shards begin a block at one moment."""

    async def meet(self, block: int) -> float:
        """Wait for the others; the common start on the wall clock (Unix, s)."""
        ...


@dataclass(frozen=True, slots=True)
class Shard:
    """Number ``index`` of ``count`` processes that send together.

    Attributes:
        barrier: ``None`` for a process that is alone.
        start_at: Wall clock before which nothing is sent; ``None`` = at once.
        zero_wall_s: Wall clock at 0 of the run's clock, the same for all processes.
    """

    index: int = 0
    count: int = 1
    barrier: Barrier | None = None
    start_at: float | None = None
    zero_wall_s: float | None = None

    def share(self, block: Block) -> tuple[Block, int, int] | None:
        """This shard's part of a block.

        Returns:
            The block with its own concurrency, and (offset, step) into the block's
            requests; ``None`` when the block has too few slots for this shard.
        """
        if block.concurrency is None:
            return block, self.index, self.count
        busy = min(self.count, block.concurrency)
        if self.index >= busy:
            return None
        slots, rest = divmod(block.concurrency, busy)
        own = slots + (self.index < rest)
        starts = None if block.starts_s is None else block.starts_s[self.index :: busy]
        return replace(block, concurrency=own, starts_s=starts), self.index, busy

    async def meet(self, block: int) -> None:
        """Wait until all shards are ready for the block, and for its start."""
        start = self.start_at or 0.0
        if self.barrier is not None:
            start = max(start, await self.barrier.meet(block))
        await asyncio.sleep(max(0.0, start - time.time()))


ALONE = Shard()
"""One process sends everything."""


def every(requests: Iterator[Planned], offset: int, step: int) -> Iterator[Planned]:
    """Each ``step``-th request or session; never looks further than asked."""
    for number, planned in enumerate(requests):
        unit = number if planned.session is None else planned.session
        if unit % step == offset:
            yield planned


class FolderBarrier:
    """A barrier made of small files in a folder that all shards see.

    Each shard writes the earliest moment at which it could begin; the latest of all
    is the start. A shard of which a ``dead`` file says that it is gone is not waited
    for.
    """

    def __init__(self, folder: Path, shard: int, count: int, timeout_s: float) -> None:
        """After ``timeout_s`` the missing shards are given up and marked dead."""
        self._folder = folder
        self._shard = shard
        self._count = count
        self._timeout_s = timeout_s

    async def meet(self, block: int) -> float:
        """Wait for the others; the common start on the wall clock (Unix, s)."""
        self._write(f"{block}.{self._shard}", str(time.time() + _LEAD_S))
        ends = time.monotonic() + self._timeout_s
        while True:
            starts = [self._read(f"{block}.{i}") for i in range(self._count)]
            absent = [
                i for i, s in enumerate(starts) if s is None and not self._is_dead(i)
            ]
            if not absent:
                return max(float(s) for s in starts if s is not None)
            if time.monotonic() > ends:
                for index in absent:
                    mark_dead(self._folder, index, "did not come to a block in time")
            await asyncio.sleep(_POLL_S)

    def _is_dead(self, shard: int) -> bool:
        return (self._folder / f"dead.{shard}").exists()

    def _write(self, name: str, text: str) -> None:
        temporary = self._folder / f".{name}.tmp"
        try:
            temporary.write_text(text)
            temporary.replace(self._folder / name)
        except OSError as error:
            raise StoredRunError(f"cannot write {temporary}: {error}") from error

    def _read(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text()
        except FileNotFoundError:
            return None


def mark_dead(folder: Path, shard: int, words: str) -> None:
    """Say that a shard is gone, so that the others go on without it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"dead.{shard}").write_text(f"{time.time()}\n{words}")


def dead_shards(folder: Path) -> dict[int, tuple[float, str]]:
    """Shards that are gone: when (wall clock) and how."""
    found: dict[int, tuple[float, str]] = {}
    for path in folder.glob("dead.*"):
        at, _, words = path.read_text().partition("\n")
        found[int(path.suffix[1:])] = (float(at), words)
    return found
