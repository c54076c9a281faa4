"""A ``StateStore`` in memory: for trials and tests, and a model for other drivers."""

import threading

import msgspec

from routeproof.canary.deciding.state import State
from routeproof.canary.deciding.store import AuditEntry, StaleRevisionError


class MemoryStore:
    """State and audit of one process; gone when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[str, State] = {}
        self._audit: list[AuditEntry] = []

    def read(self, name: str) -> State | None:
        """The current state of a canary, or ``None`` when there is none."""
        with self._lock:
            return self._states.get(name)

    def write(self, state: State, *, expected: int, entry: AuditEntry) -> None:
        """Store state and audit entry together, if nobody came first.

        Raises:
            StaleRevisionError: The stored revision is not ``expected``.
        """
        with self._lock:
            found = self._states.get(state.name)
            revision = 0 if found is None else found.revision
            if revision != expected:
                raise StaleRevisionError(
                    f"canary {state.name} is at revision {revision}, "
                    f"expected {expected}",
                    hint="read the state again; somebody else changed it",
                )
            self._states[state.name] = state
            self._audit.append(
                msgspec.structs.replace(entry, sequence=len(self._audit) + 1)
            )

    def since(self, sequence: int) -> list[AuditEntry]:
        """Audit entries after ``sequence``, in order."""
        with self._lock:
            return self._audit[max(0, sequence) :]
