"""Where canary states live: compare-and-set, ordered watch, append-only audit.

The interface is small so that a server database can stand behind it; the default is
one SQLite file (WAL), which serves every process of one machine.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from routeproof.canary.deciding.state import State
from routeproof.errors import StoredRunError


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the audit: who did what, when, why, on which numbers.

    Attributes:
        sequence: Rises by one with every entry of the store; 0 before it is stored.
        actor: ``controller``, or a name the admin key stands for; never a key.
        numbers: What was decided on.
    """

    name: str
    actor: str
    action: str
    reason: str
    at_s: float
    revision: int
    numbers: dict[str, float | int | str | None] = {}
    sequence: int = 0


class StaleRevisionError(StoredRunError):
    """Somebody else wrote this canary first; read again and decide again."""


Stored = TypeVar("Stored", State, AuditEntry)


class StateStore(Protocol):
    """What the controller and the relays need of a store.

    Three calls, so that Postgres (``UPDATE ... WHERE revision = ?`` and the audit row
    in one transaction) and NATS JetStream (key-value with revisions, a stream for the
    audit) can stand behind it. A driver owes:

    - ``write`` is all or nothing: state and audit entry, or neither; of two writers
      that expect the same revision one gets ``StaleRevisionError``.
    - ``read`` gives what the last ``write`` anywhere stored, or raises: a replica that
      lags must not hand out an older weight. A lost write may only be one the caller
      was told of.
    - ``since`` numbers the entries of all canaries from 1 without gaps, in the order
      in which they were stored, and gives the same again: it is the watch and the
      replay after a gap.
    - Nothing is ever taken out of the audit.
    - Whatever goes wrong is a ``StoredRunError``, within seconds: the lease runs.
    """

    def read(self, name: str) -> State | None:
        """The current state of a canary, or ``None`` when there is none."""
        ...

    def write(self, state: State, *, expected: int, entry: AuditEntry) -> None:
        """Store state and audit entry in one transaction, if nobody came first."""
        ...

    def since(self, sequence: int) -> list[AuditEntry]:
        """Audit entries after ``sequence``, in order: the watch, replayable."""
        ...


class SqliteStore:
    """A ``StateStore`` in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(
                "CREATE TABLE IF NOT EXISTS state"
                " (name TEXT PRIMARY KEY, revision INTEGER NOT NULL,"
                " body BLOB NOT NULL)"
            )
            db.execute(
                "CREATE TABLE IF NOT EXISTS audit"
                " (sequence INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL)"
            )
            db.executescript(
                "CREATE TRIGGER IF NOT EXISTS audit_is_kept BEFORE DELETE ON audit"
                " BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;"
                "CREATE TRIGGER IF NOT EXISTS audit_is_fixed BEFORE UPDATE ON audit"
                " BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;"
            )

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(self.path, timeout=2.0)
            try:
                with db:
                    yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            raise StoredRunError(
                f"cannot use the canary state {self.path}: {error}",
                hint="the file must be on a local disk with space, and writable",
            ) from error

    def read(self, name: str) -> State | None:
        """The current state of a canary, or ``None`` when there is none.

        Raises:
            StoredRunError: The file cannot be read.
        """
        with self._open() as db:
            row = db.execute(
                "SELECT body FROM state WHERE name = ?", (name,)
            ).fetchone()
        return None if row is None else self._decoded(row[0], State)

    def _decoded(self, body: bytes, kind: type[Stored]) -> Stored:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise StoredRunError(
                f"what {self.path} holds cannot be read: {error}",
                hint="it was written by another version, or is damaged; move the file "
                "away to begin anew",
            ) from error

    def write(self, state: State, *, expected: int, entry: AuditEntry) -> None:
        """Store state and audit entry in one transaction, if nobody came first.

        Args:
            state: The new state; its revision must be above ``expected``.
            expected: Revision the decision was made on; 0 when there was no state.
            entry: Its audit line.

        Raises:
            StaleRevisionError: The stored revision is not ``expected``.
            StoredRunError: The file cannot be written.
        """
        body = msgspec.json.encode(state)
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute(
                "SELECT revision FROM state WHERE name = ?", (state.name,)
            ).fetchone()
            found = 0 if row is None else int(row[0])
            if found != expected:
                raise StaleRevisionError(
                    f"canary {state.name} is at revision {found}, expected {expected}",
                    hint="read the state again; somebody else changed it",
                )
            db.execute(
                "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
                " SET revision = excluded.revision, body = excluded.body",
                (state.name, state.revision, body),
            )
            db.execute(
                "INSERT INTO audit (body) VALUES (?)", (msgspec.json.encode(entry),)
            )

    def since(self, sequence: int) -> list[AuditEntry]:
        """Audit entries after ``sequence``, in order.

        Raises:
            StoredRunError: The file cannot be read.
        """
        with self._open() as db:
            rows = db.execute(
                "SELECT sequence, body FROM audit WHERE sequence > ? ORDER BY sequence",
                (sequence,),
            ).fetchall()
        decoded = ((n, self._decoded(b, AuditEntry)) for n, b in rows)
        return [msgspec.structs.replace(entry, sequence=n) for n, entry in decoded]
