"""The stores there are. A further driver is one class and one line in this table.

What a driver owes is in ``store.StateStore``; ``tests/canary/test_stores.py`` holds
every driver of the table to it.
"""

from collections.abc import Callable
from pathlib import Path

from routeproof.canary.deciding.store import SqliteStore, StateStore
from routeproof.canary.deciding.store_memory import MemoryStore
from routeproof.errors import ConfigError
from routeproof.proof.nearest import nearest

STORES: dict[str, Callable[[Path], StateStore]] = {
    "sqlite": lambda folder: SqliteStore(folder / "state.db"),
    "memory": lambda _: MemoryStore(),
}
"""Name in the canary file to what opens the store, given the canary's own folder."""


def check_store(name: str, path: Path) -> None:
    """Refuse a store nobody knows.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in STORES:
        near = nearest(name, tuple(STORES))
        raise ConfigError(
            f"`{name}` is no store",
            path=path,
            key="canary.store",
            hint=f"did you mean `{near}`?" if near else f"known: {', '.join(STORES)}",
        )


def open_store(name: str, folder: Path) -> StateStore:
    """The store of a canary.

    Raises:
        StoredRunError: It cannot be reached.
    """
    return STORES[name](folder)
