"""Stopping a stage before its plan is used up."""

from typing import Protocol

from routeproof.runs.blocks import Block, Planned


class Until(Protocol):
    """Decides, while a stage runs, which of its requests are still wanted.

    What is not wanted is not sent and leaves no record; the stage ends early when
    nothing of it is wanted any more.
    """

    def is_wanted(self, block: Block, planned: Planned) -> bool:
        """Whether a request that has no record should be sent."""

    def is_due(self, block: Block) -> bool:
        """Whether to look at the records now that ``block`` has ended."""

    async def look(self) -> None:
        """Look at what is on disk; called between blocks, with nothing in flight."""
