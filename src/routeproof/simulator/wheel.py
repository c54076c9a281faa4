"""Evenly spaced writes to many streams: each stream has a phase of one common pace.

Streams that begin together would be due together for ever after, and one core writes
one after the other. So the pace is cut into slots, and streams get slots that lie as
far apart as may be.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

SLOTS = 1024
"""Phases of a pace; more streams than that share them."""

Stream = TypeVar("Stream")


def spread(slots: int = SLOTS) -> Iterator[int]:
    """Every slot once, each as far from those before as may be: bits in reverse.

    Args:
        slots: A power of two.

    Example:
        >>> list(spread(8))
        [0, 4, 2, 6, 1, 5, 3, 7]
    """
    width = slots.bit_length() - 1
    for number in range(slots):
        yield int(f"{number:0{width}b}"[::-1], 2)


class PhaseWheel(Generic[Stream]):
    """Turns once in every pace and writes to the streams of each slot as it passes.

    Args:
        pace_ns: Time between two writes to a stream.
        write: Writes to a stream that was due at a time; ``False`` takes it off.
        now_ns: The clock at the beginning.
    """

    def __init__(
        self, pace_ns: int, write: Callable[[Stream, int], bool], now_ns: int
    ) -> None:
        self._pace_ns = pace_ns
        self._write = write
        self._slots: list[list[Stream]] = [[] for _ in range(SLOTS)]
        self._free: deque[int] = deque()
        self._waiting: dict[int, list[Stream]] = {}
        self._start_ns = now_ns
        self._passed = 0
        self.alive = 0

    def next_ns(self) -> int:
        """When the next slot with streams is due; at most a whole turn ahead."""
        end = self._passed + SLOTS
        for number in range(self._passed, end):
            if self._slots[number % SLOTS] or number in self._waiting:
                return self._due_ns(number)
        return self._due_ns(end)

    def add(self, stream: Stream, not_before_ns: int, now_ns: int) -> int:
        """Give a stream a slot.

        Returns:
            When its first write is due: the first turn of its slot at or after
            ``not_before_ns``.
        """
        if not self.alive:  # an empty wheel stood still
            self._passed = max(self._passed, self._number(now_ns))
        if not self._free:
            self._free.extend(spread())
        slot = self._free.popleft()
        number = max(self._number(not_before_ns), self._passed)
        number += (slot - number) % SLOTS
        self._waiting.setdefault(number, []).append(stream)
        self.alive += 1
        return self._due_ns(number)

    def turn(self, now_ns: int, most: int) -> bool:
        """Write to what is due by ``now_ns``, at most ``most`` slots of it.

        Returns:
            Whether all of it was written.
        """
        for number in range(self._passed, self._passed + most):
            due_ns = self._start_ns + number * self._pace_ns // SLOTS
            if due_ns > now_ns:
                self._passed = number
                return True
            here = self._slots[number % SLOTS]
            if self._waiting and number in self._waiting:
                here.extend(self._waiting.pop(number))
            if here:
                self._visit(here, number % SLOTS, due_ns)
        self._passed += most
        return False

    def _visit(self, here: list[Stream], slot: int, due_ns: int) -> None:
        gone = [stream for stream in here if not self._write(stream, due_ns)]
        for stream in gone:
            here.remove(stream)
            self.alive -= 1
            self._free.appendleft(slot)

    def _number(self, at_ns: int) -> int:
        """The first slot due at or after a time, counted from the beginning."""
        return -((self._start_ns - at_ns) * SLOTS // self._pace_ns)

    def _due_ns(self, number: int) -> int:
        return self._start_ns + number * self._pace_ns // SLOTS
