"""Sampled live exchanges and the spool that keeps them across restarts.

The spool is bounded: what does not fit is dropped and counted by arm, since unequal
drops would bias the comparison. Text is redacted before it gets here; prompts are not
kept unless asked for; with a seal, bodies are encrypted at rest.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from routeproof.canary.splitting.split import LiveArm
from routeproof.errors import StoredRunError
from routeproof.records.record import Record


class Shadow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The other arm's answer to the same prompt.

    Attributes:
        record: As of the sample, text redacted.
        signals: As of the sample.
        preference: A judge's preference for the canary, 0 to 1; ``None`` unasked.
    """

    arm: LiveArm
    record: Record
    signals: dict[str, bool | None]
    preference: float | None = None


class Sample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sampled exchange.

    Attributes:
        at_s: Wall clock when the answer had ended.
        stratum: Route and tenant class; arms are compared inside it.
        request: The request fields that signals need (``response_format``, ``tools``,
            ``max_tokens`` ...), never the prompt.
        prompt: Redacted messages, or ``None`` when prompts are not kept.
        record: The answer as any run would record it, text redacted.
        owner: Digest of the user key, for erasure; ``None`` when there is none.
        signals: Signal name to "was it bad", ``None`` where it does not apply.
        shadow: The other arm's answer, where the prompt was replayed.
    """

    request_id: str
    arm: LiveArm
    at_s: float
    stratum: str
    request: dict[str, Any] = {}
    prompt: list[dict[str, Any]] | None = None
    record: Record
    owner: str | None = None
    signals: dict[str, bool | None] | None = None
    shadow: Shadow | None = None


@dataclass(frozen=True, slots=True)
class Seal:
    """How bodies are kept at rest; the default keeps them as they are."""

    close: Callable[[bytes], bytes] = bytes
    open: Callable[[bytes], bytes] = bytes


FILL = bytes(16_384)
"""As much as a sample with a long answer takes: a disk with room for less is full."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sample (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    response_id TEXT,
    arm TEXT NOT NULL,
    at_s REAL NOT NULL,
    owner TEXT,
    is_scored INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS sample_response ON sample (response_id);
CREATE TABLE IF NOT EXISTS dropped (arm TEXT PRIMARY KEY, n INTEGER NOT NULL);
"""


@dataclass(slots=True)
class Spool:
    """Samples in one SQLite file, the oldest scored ones giving way.

    One connection serves all threads of the process, under a lock. A commit reaches
    the disk at the next checkpoint: the last samples may be lost when the machine
    dies, none when the process does.

    Attributes:
        limit: Most samples kept.
        seal: How bodies are kept at rest.
    """

    path: Path
    limit: int = 50_000
    seal: Seal = field(default_factory=Seal)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)
    _db: sqlite3.Connection | None = field(default=None, init=False)
    _kept: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        with self._open() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.executescript(_SCHEMA)
            (self._kept,) = db.execute("SELECT COUNT(*) FROM sample").fetchone()

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = sqlite3.connect(
                        self.path, timeout=2.0, check_same_thread=False
                    )
                    self._db.execute("PRAGMA secure_delete=ON")
                if self._db.in_transaction:
                    yield self._db
                else:
                    with self._db:
                        yield self._db
            except sqlite3.Error as error:
                self.close()
                raise StoredRunError(
                    f"cannot use the sample spool {self.path}: {error}",
                    hint="it must be on a local disk with space, and writable",
                ) from error

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Several writes in one transaction; inside another one it joins that."""
        with self._lock, self._open() as db:
            if not db.in_transaction:
                db.execute("BEGIN")
            yield

    def add(self, sample: Sample, *, response_id: str | None = None) -> bool:
        """Keep a sample; the same request id a second time changes nothing.

        Returns:
            False when there was no room and it was dropped (and counted).

        Raises:
            StoredRunError: The file cannot be written.
        """
        body = self.seal.close(msgspec.json.encode(sample))
        is_scored = sample.signals is not None
        with self._open() as db:
            if self._kept >= self.limit and not self._make_room(db):
                self._count_drop(db, sample.arm)
                return False
            made = db.execute(
                "INSERT OR IGNORE INTO sample (request_id, response_id, arm, at_s,"
                " owner, is_scored, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    sample.request_id,
                    response_id,
                    sample.arm,
                    sample.at_s,
                    sample.owner,
                    int(is_scored),
                    body,
                ),
            )
            self._kept += made.rowcount
        return True

    def _make_room(self, db: sqlite3.Connection) -> bool:
        share = max(1, self.limit // 20)
        gone = db.execute(
            "DELETE FROM sample WHERE sequence IN (SELECT sequence FROM sample"
            " WHERE is_scored = 1 ORDER BY sequence LIMIT ?)",
            (share,),
        )
        self._kept -= gone.rowcount
        return gone.rowcount > 0

    @staticmethod
    def _count_drop(db: sqlite3.Connection, arm: str) -> None:
        db.execute(
            "INSERT INTO dropped VALUES (?, 1) ON CONFLICT (arm) DO UPDATE"
            " SET n = n + 1",
            (arm,),
        )

    def drop(self, arm: LiveArm) -> None:
        """Count a sample that was lost before it got here."""
        with self._open() as db:
            self._count_drop(db, arm)

    def try_write(self) -> None:
        """Write something that changes nothing.

        Raises:
            StoredRunError: The disk takes nothing, still.
        """
        with self._open() as db:
            db.execute(
                "INSERT INTO sample VALUES (0, '', '', '', 0, '', 1, ?)", (FILL,)
            )
            db.execute("DELETE FROM sample WHERE sequence = 0")

    def dropped(self) -> dict[str, int]:
        """Samples dropped so far, by arm."""
        with self._open() as db:
            return dict(db.execute("SELECT arm, n FROM dropped").fetchall())

    def unscored(self, limit: int = 100) -> list[Sample]:
        """The oldest samples that still wait for their scores."""
        return self._samples("is_scored = 0 ORDER BY sequence LIMIT ?", (limit,))

    def latest(self, limit: int = 100) -> list[Sample]:
        """The newest samples, newest first."""
        return self._samples("1 ORDER BY sequence DESC LIMIT ?", (limit,))

    def between(self, since_s: float, until_s: float) -> list[Sample]:
        """Samples of a span of wall-clock time, in order."""
        where = "at_s >= ? AND at_s < ? ORDER BY sequence"
        return self._samples(where, (since_s, until_s))

    def find(self, response_id: str) -> Sample | None:
        """The sample with this response or request id."""
        where = "response_id = ?1 OR request_id = ?1 LIMIT 1"
        found = self._samples(where, (response_id,))
        return found[0] if found else None

    def _samples(self, where: str, values: tuple[Any, ...]) -> list[Sample]:
        with self._open() as db:
            rows = db.execute(
                f"SELECT body FROM sample WHERE {where}", values
            ).fetchall()
        return [self._opened(body) for (body,) in rows]

    def _opened(self, body: bytes) -> Sample:
        try:
            return msgspec.json.decode(self.seal.open(body), type=Sample)
        except msgspec.DecodeError as error:
            raise StoredRunError(
                f"a sample in {self.path} cannot be read: {error}",
                hint="name the key it was sealed with in `privacy.seal_key_env`, or "
                "remove the spool",
            ) from error

    def change(self, request_id: str, change: Callable[[Sample], Sample]) -> None:
        """Change a kept sample; nothing happens when it is gone by now."""
        with self.together():
            found = self.find(request_id)
            if found is not None and found.request_id == request_id:
                self.score(change(found))

    def score(self, sample: Sample) -> None:
        """Replace a sample by itself with its signals."""
        body = self.seal.close(msgspec.json.encode(sample))
        with self._open() as db:
            db.execute(
                "UPDATE sample SET body = ?, is_scored = 1 WHERE request_id = ?",
                (body, sample.request_id),
            )

    def waiting(self) -> tuple[int, float | None]:
        """How many samples wait for scores, and since when the oldest waits."""
        with self._open() as db:
            n, oldest = db.execute(
                "SELECT COUNT(*), MIN(at_s) FROM sample WHERE is_scored = 0"
            ).fetchone()
        return int(n), oldest

    def expire(self, before_s: float) -> int:
        """Forget samples older than a wall-clock time; returns how many."""
        with self._open() as db:
            gone = db.execute("DELETE FROM sample WHERE at_s < ?", (before_s,))
            self._kept -= gone.rowcount
            return gone.rowcount

    def erase(self, owner: str) -> int:
        """Forget everything of one user key; returns how many samples.

        The bytes are overwritten in the file, and none are left in its log.
        """
        with self._open() as db:
            gone = db.execute("DELETE FROM sample WHERE owner = ?", (owner,))
            self._kept -= gone.rowcount
        with self._open() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone.rowcount
