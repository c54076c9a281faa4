"""What ``conduct`` writes into the manifest: stages, finished blocks, health."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from routeproof.records.files import write_atomically
from routeproof.records.manifest import ClientHealth, StageDone, Threshold
from routeproof.records.store import RunFolder
from routeproof.runs.health import judge_client, worse_of
from routeproof.runs.watch import Watch


class Logbook:
    """Keeps the manifest of a folder up to date; does nothing without a manifest.

    One of several processes writes its health beside the manifest instead
    (``shards/<number>.json``); whoever started them puts it together.
    """

    def __init__(
        self, folder: RunFolder, before: Sequence[Threshold] = (), *, alone: bool = True
    ) -> None:
        """``before`` are checks made before the run."""
        self._folder = folder
        self._alone = alone
        self._exists = folder.manifest_path.exists()
        earlier = folder.read_manifest() if self._exists else None
        self._blocks = set(earlier.blocks_done) if earlier else set()
        health = earlier.health if earlier else None
        self._earlier = dict(health.by_level) if health else {}
        kept = [c for c in health.checks if "/" not in c.name] if health else []
        self._before = [*kept, *before]

    def is_done(self, block: int) -> bool:
        """Whether a block that runs by the clock is known to be whole."""
        return block in self._blocks

    def recall(self, name: str) -> str | None:
        """What an earlier part of the run, or this one, wrote under ``notes``."""
        if not self._exists:
            return None
        found = self._folder.read_manifest().notes.get(name)
        return found if isinstance(found, str) else None

    def remember(self, name: str, value: str) -> None:
        """Write a fact under ``notes``, so that a resumed run knows it."""
        if self._exists and self._alone:
            manifest = self._folder.read_manifest()
            notes = {**manifest.notes, name: value}
            self._folder.write_manifest(replace(manifest, notes=notes))

    def note_block(self, block: int) -> None:
        """A block that runs by the clock is whole, its records are on disk."""
        self._blocks.add(block)
        if self._exists and self._alone:
            manifest = self._folder.read_manifest()
            done = tuple(sorted(self._blocks))
            self._folder.write_manifest(replace(manifest, blocks_done=done))

    def note_stage(self, done: StageDone) -> None:
        """A stage has ended; an earlier entry of it is replaced."""
        if not self._exists or not self._alone:
            return
        manifest = self._folder.read_manifest()
        others = [
            s for s in manifest.stages if (s.phase, s.level) != (done.phase, done.level)
        ]
        self._folder.write_manifest(replace(manifest, stages=(*others, done)))

    def note_health(self, watch: Watch) -> None:
        """The client on itself, with what earlier parts of the run had found."""
        if not self._alone:
            self._write_shard(watch)
            return
        if not self._exists:
            return
        levels = dict(self._earlier)
        for place, numbers in watch.numbers().items():
            before = self._earlier.get(place)
            levels[place] = worse_of(before, numbers) if before else numbers
        health = judge_client(levels, before=self._before, notes=watch.notes())
        manifest = self._folder.read_manifest()
        self._folder.write_manifest(replace(manifest, health=health))

    def _write_shard(self, watch: Watch) -> None:
        health = judge_client(watch.numbers(), notes=watch.notes())
        path = self._folder.shard_path(self._folder.shard)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(health))


def merge_shards(
    folder: RunFolder,
    shards: int,
    gone: Mapping[int, tuple[float, str]],
    *,
    before: Sequence[Threshold] = (),
    stages: Sequence[StageDone] = (),
) -> None:
    """Put the health of all shards into the manifest.

    Args:
        folder: The run.
        shards: How many there were.
        gone: Those that died: seconds on the run's clock, and how.
        before: Checks made before the run.
        stages: As they went, so that a shard that died marks those it was missed in.
    """
    if not folder.manifest_path.exists():
        return
    manifest = folder.read_manifest()
    levels = dict(manifest.health.by_level) if manifest.health else {}
    earlier = (
        [c for c in manifest.health.checks if "/" not in c.name]
        if manifest.health
        else []
    )
    notes: list[str] = []
    for shard in range(shards):
        path = folder.shard_path(shard)
        if path.exists():
            health = msgspec.json.decode(path.read_bytes(), type=ClientHealth)
            notes.extend(health.notes)
            for place, numbers in health.by_level.items():
                known = levels.get(place)
                levels[place] = worse_of(known, numbers) if known else dict(numbers)
    dead = [
        Threshold(
            name=f"shard_{shard}_alive", value=0.0, limit=1.0, at_least=True, ok=False
        )
        for shard in sorted(gone)
    ]
    for shard, (at_s, words) in sorted(gone.items()):
        notes.append(
            f"shard {shard} died at {at_s:.1f} s ({words}); from then on the load was "
            f"less than asked{_missed_in(stages, at_s)}"
        )
    health = judge_client(levels, before=[*earlier, *before, *dead], notes=notes)
    folder.write_manifest(replace(manifest, health=health))


def _missed_in(stages: Sequence[StageDone], at_s: float) -> str:
    """The windows that a death spoils: what had not ended by then."""
    windows = [
        f"{s.phase}/{s.level} ({max(at_s, s.started_s):.1f} to {s.ended_s:.1f} s)"
        for s in stages
        if s.started_s is not None and s.ended_s is not None and s.ended_s >= at_s
    ]
    return f": {', '.join(windows)}" if windows else ""
