"""What ``conduct`` writes into the manifest: stages, finished blocks, health."""

from collections.abc import Sequence

from msgspec.structs import replace

from routeproof.records.manifest import StageDone, Threshold
from routeproof.records.store import RunFolder
from routeproof.runs.health import judge_client, worse_of
from routeproof.runs.watch import Watch


class Logbook:
    """Keeps the manifest of a folder up to date; does nothing without a manifest."""

    def __init__(self, folder: RunFolder, before: Sequence[Threshold] = ()) -> None:
        """``before`` are checks made before the run."""
        self._folder = folder
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

    def note_block(self, block: int) -> None:
        """A block that runs by the clock is whole, its records are on disk."""
        self._blocks.add(block)
        if self._exists:
            manifest = self._folder.read_manifest()
            done = tuple(sorted(self._blocks))
            self._folder.write_manifest(replace(manifest, blocks_done=done))

    def note_stage(self, done: StageDone) -> None:
        """A stage has ended; an earlier entry of it is replaced."""
        if not self._exists:
            return
        manifest = self._folder.read_manifest()
        others = [
            s for s in manifest.stages if (s.phase, s.level) != (done.phase, done.level)
        ]
        self._folder.write_manifest(replace(manifest, stages=(*others, done)))

    def note_health(self, watch: Watch) -> None:
        """The client on itself, with what earlier parts of the run had found."""
        if not self._exists:
            return
        levels = dict(self._earlier)
        for place, numbers in watch.numbers().items():
            before = self._earlier.get(place)
            levels[place] = worse_of(before, numbers) if before else numbers
        health = judge_client(levels, before=self._before, notes=watch.notes())
        manifest = self._folder.read_manifest()
        self._folder.write_manifest(replace(manifest, health=health))
