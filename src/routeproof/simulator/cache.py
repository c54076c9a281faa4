"""The prefix cache: which blocks of which prompts are still there."""

from collections import OrderedDict
from collections.abc import Sequence


class PrefixCache:
    """Blocks by the hash of the whole prefix they end; the least used go first."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def matched(self, blocks: Sequence[int]) -> int:
        """How many leading blocks are cached; a hit makes them the latest used."""
        found = 0
        for block in blocks:
            if block not in self._blocks:
                break
            self._blocks.move_to_end(block)
            found += 1
        return found

    def remember(self, blocks: Sequence[int], capacity_blocks: int) -> None:
        """Keep a prompt's blocks, within the capacity."""
        for block in blocks:
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > max(capacity_blocks, 0):
            self._blocks.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._blocks.clear()
