"""The run folder: crash-safe append, columnar read, manifest.

Records become immutable Parquet parts, each written whole or not at all, so that
kill -9 at any moment loses only what was not flushed and never half a record.
"""

import re
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import StoredRunError
from routeproof.records.columns import Records
from routeproof.records.files import read_bytes, write_atomically
from routeproof.records.manifest import Manifest
from routeproof.records.parquet import AnyColumn, Storage, read_table, write_table
from routeproof.records.record import SCHEMA, Record
from routeproof.records.schema import columns_of, records_of

_PART = re.compile(r"part-(\d+)-(\d+)\.parquet")
_KIND = "routeproof records"
_TELEMETRY_KIND = "routeproof telemetry"


class RunFolder:
    """A run on disk. One writer per shard; any number of readers.

    Attributes:
        path: The folder.
        shard: Number of the writer; its parts carry it.
    """

    def __init__(self, path: Path, *, shard: int = 0) -> None:
        self.path = path
        self.shard = shard
        self._pending: list[Record] = []
        self._flushing = threading.Lock()

    @classmethod
    def create(cls, path: Path, *, shard: int = 0) -> "RunFolder":
        """Make a new folder with the sub-folders of a run.

        Raises:
            StoredRunError: It holds a run already, or cannot be made.
        """
        if (path / "manifest.json").exists() or _numbered(path / "records"):
            raise StoredRunError(
                f"{path} holds a run already",
                hint="go on with it by --resume, or give another folder",
            )
        try:
            for name in ("records", "telemetry", "probe", "logs"):
                (path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoredRunError(
                f"cannot make the run folder {path}: {error.strerror or error}",
                hint="give a folder that you may write to with --out",
            ) from error
        return cls(path, shard=shard)

    @classmethod
    def open(cls, path: Path, *, shard: int = 0) -> "RunFolder":
        """Open an existing run.

        Raises:
            StoredRunError: There is no run in ``path``.
        """
        if not (path / "records").is_dir():
            raise StoredRunError(
                f"{path} is not a run folder: it has no `records`",
                hint="give the folder that a run printed, such as runs/20260101-120000",
            )
        return cls(path, shard=shard)

    @property
    def manifest_path(self) -> Path:
        """``manifest.json``."""
        return self.path / "manifest.json"

    @property
    def proof_path(self) -> Path:
        """``proof.yaml``, the proof file as given."""
        return self.path / "proof.yaml"

    @property
    def cases_path(self) -> Path:
        """``cases.jsonl``, the cases as sent."""
        return self.path / "cases.jsonl"

    @property
    def scores_path(self) -> Path:
        """``scores.parquet``, derived."""
        return self.path / "scores.parquet"

    @property
    def judgement_path(self) -> Path:
        """``judgement.json``, derived."""
        return self.path / "judgement.json"

    def log_path(self, arm: str) -> Path:
        """Log of an engine that routeproof launched."""
        return self.path / "logs" / f"{arm}.log"

    def probe_path(self, arm: str) -> Path:
        """Folder of the raw answers the inventory was read from."""
        return self.path / "probe" / arm

    @property
    def shards_path(self) -> Path:
        """Folder in which several load processes meet; made when there are several."""
        return self.path / "shards"

    @property
    def barrier_path(self) -> Path:
        """Folder of the files by which load processes wait for each other."""
        return self.shards_path / "barrier"

    def shard_path(self, shard: int) -> Path:
        """What one of several load processes found out about itself."""
        return self.shards_path / f"{shard:03d}.json"

    def append(self, records: Iterable[Record]) -> None:
        """Take finished records; they are safe on disk after the next ``flush``."""
        self._pending.extend(records)

    @property
    def pending(self) -> int:
        """Records taken and not yet on disk."""
        return len(self._pending)

    def flush(self) -> Path | None:
        """Write what is pending as one part; may be called from another thread.

        Returns:
            The part, or ``None`` when nothing was pending.

        Raises:
            StoredRunError: Disk full or read-only folder; the records stay pending.
        """
        with self._flushing:
            taken = self._pending[:]
            if not taken:
                return None
            path = self._next_part("records")
            columns, storage = columns_of(taken)
            notes = {"kind": _KIND, "schema": str(SCHEMA)}
            write_table(path, columns, storage=storage, metadata=notes)
            del self._pending[: len(taken)]
            return path

    def write_records(
        self, columns: dict[str, AnyColumn], storage: dict[str, Storage]
    ) -> Path:
        """Write columns of records as a part of their own, such as those taken over.

        Raises:
            StoredRunError: Disk full or read-only folder.
        """
        with self._flushing:
            path = self._next_part("records")
            notes = {"kind": _KIND, "schema": str(SCHEMA)}
            write_table(path, columns, storage=storage, metadata=notes)
            return path

    def part_paths(self) -> tuple[Path, ...]:
        """The record parts, by shard and number."""
        return _numbered(self.path / "records")

    def parts(self, only: Collection[str] | None = None) -> Iterator[Records]:
        """The stored records, part by part, so that memory stays flat.

        Args:
            only: Columns to read (see ``records.schema.FIELDS``); all when ``None``.

        Raises:
            StoredRunError: A part is torn, foreign, or of a schema this version
                does not know.
        """
        for path in self.part_paths():
            yield self.part(path, only)

    def done_request_ids(self) -> set[str]:
        """Ids of the requests that have a record on disk; what resume leaves out."""
        done: set[str] = set()
        for records in self.parts(only=("request_id",)):
            done.update(records.text("request_id").tolist())
        return done

    def write_telemetry(
        self, columns: dict[str, AnyColumn], storage: dict[str, Storage] | None = None
    ) -> Path:
        """Write samples (columns ``at_s``, ``arm``, ``name``, ``value``) as a part."""
        with self._flushing:
            path = self._next_part("telemetry")
            notes = {"kind": _TELEMETRY_KIND, "schema": str(SCHEMA)}
            write_table(path, columns, storage=storage, metadata=notes)
            return path

    def telemetry(self) -> Iterator[Records]:
        """Stored samples, part by part.

        Yields:
            Numbers ``at_s`` and ``value``; texts ``arm`` and ``name``.
        """
        for path in _numbered(self.path / "telemetry"):
            n, columns, notes = read_table(path)
            _check(path, notes, _TELEMETRY_KIND)
            yield records_of(n, columns)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace ``manifest.json`` atomically.

        Raises:
            StoredRunError: Disk full or read-only folder.
        """
        encoded = msgspec.json.encode(manifest, order="deterministic")
        write_atomically(self.manifest_path, msgspec.json.format(encoded) + b"\n")

    def read_manifest(self) -> Manifest:
        """Read ``manifest.json``.

        Raises:
            StoredRunError: Missing, damaged, or of another schema.
        """
        data = read_bytes(self.manifest_path, what="manifest.json")
        try:
            plain = msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise StoredRunError(f"{self.manifest_path} is damaged: {error}") from error
        schema = plain.get("schema") if isinstance(plain, dict) else None
        _check_schema(self.manifest_path, schema)
        try:
            return msgspec.convert(plain, Manifest)
        except msgspec.ValidationError as error:
            raise StoredRunError(f"{self.manifest_path}: {error}") from error

    def _next_part(self, kind: str) -> Path:
        folder = self.path / kind
        own = [_place(p)[1] for p in _numbered(folder) if _place(p)[0] == self.shard]
        number = max(own, default=0) + 1
        return folder / f"part-{self.shard:03d}-{number:06d}.parquet"

    def part(self, path: Path, only: Collection[str] | None = None) -> Records:
        """One of ``part_paths``, read like ``parts`` does."""
        names = None if only is None else {*only}
        if names is not None and "chunk_s" in names:
            names.add("intended_s")
        n, columns, notes = read_table(path, names)
        _check(path, notes, _KIND)
        return records_of(n, columns)


def _numbered(folder: Path) -> tuple[Path, ...]:
    try:
        found = [p for p in folder.iterdir() if _PART.fullmatch(p.name)]
    except FileNotFoundError:
        return ()
    return tuple(sorted(found, key=_place))


def _place(path: Path) -> tuple[int, int]:
    match = _PART.fullmatch(path.name)
    assert match is not None
    return int(match[1]), int(match[2])


def _check(path: Path, notes: dict[str, str], kind: str) -> None:
    if notes.get("kind") != kind:
        raise StoredRunError(
            f"{path} is a Parquet file, but not one of {kind}",
            hint="move it out of the run folder",
        )
    stored = notes.get("schema", "")
    _check_schema(path, int(stored) if stored.isdecimal() else stored)


def _check_schema(path: Path, schema: Any) -> None:
    if schema == SCHEMA:
        return
    if isinstance(schema, int) and schema > SCHEMA:
        raise StoredRunError(
            f"{path} was written by a newer routeproof (schema {schema}; this one "
            f"reads {SCHEMA})",
            hint="upgrade routeproof, or judge the run where it was made",
        )
    raise StoredRunError(
        f"{path} has the schema {schema!r}; this routeproof reads {SCHEMA}"
    )
