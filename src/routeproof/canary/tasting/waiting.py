"""Work that waits, in a bounded queue, for the one thread that does it in batches."""

import queue
from typing import Generic, TypeVar

T = TypeVar("T")


class Waiting(Generic[T]):
    """Items in the order in which they came; ``None`` among them is the end.

    Attributes:
        most: How many items there is room for.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._items: queue.Queue[T | None] = queue.Queue(maxsize=most)

    def put(self, item: T) -> bool:
        """Take an item without waiting; false when there is no room."""
        try:
            self._items.put_nowait(item)
        except queue.Full:
            return False
        return True

    def end(self) -> None:
        """Let the thread end after what stands here; waits for room."""
        self._items.put(None)

    def forget(self) -> None:
        """Throw away what stands here."""
        while True:
            try:
                self._items.get_nowait()
            except queue.Empty:
                return

    def batch(self, most: int) -> tuple[list[T], bool]:
        """What stands here, at most ``most`` items, and whether the end was reached.

        Blocks while there is nothing. What stands before the end comes with it.
        """
        batch: list[T] = []
        while (item := self._items.get()) is not None:
            batch.append(item)
            if len(batch) >= most or self._items.empty():
                return batch, False
        return batch, True

    def first(self) -> T | None:
        """What comes next, left where it is; ``None`` when nothing waits."""
        with self._items.mutex:
            return self._items.queue[0] if self._items.queue else None

    def is_full(self) -> bool:
        """Whether an item would be refused now."""
        return self._items.full()
