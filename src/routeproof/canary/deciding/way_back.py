"""How long a rollback takes, measured from the moment it was written."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from routeproof.canary.deciding.state import State

NAME = "last_rollback.json"


@dataclass(slots=True)
class WayBack:
    """The last rollback as this process saw it.

    Attributes:
        wall: Unix seconds.
        clock: Monotonic seconds.
        to_last_byte_s: From the trigger to the last candidate byte; ``None`` before
            that, and where a former life of this process served it: a process that was
            killed told nobody when.
        to_share_zero_s: From the trigger until a look saw an observed share of 0.
    """

    wall: Callable[[], float]
    clock: Callable[[], float]
    to_last_byte_s: float | None = field(default=None, init=False)
    to_share_zero_s: float | None = field(default=None, init=False)
    _began_s: float = field(init=False)
    _asked_s: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._began_s = self.clock()

    @property
    def is_under_way(self) -> bool:
        """From the trigger to the last candidate byte."""
        return self._asked_s is not None

    def begin(self, state: State) -> bool:
        """A rollback is under way, whoever wrote it; false when it is known already."""
        if self._asked_s is not None:
            return False
        self._asked_s = self.clock() - max(0.0, self.wall() - state.entered_s)
        self.to_last_byte_s = self.to_share_zero_s = None
        return True

    def look(self, share: float | None) -> None:
        """Take in an observed share."""
        if share == 0.0 and self._asked_s is not None and self.to_share_zero_s is None:
            self.to_share_zero_s = max(0.0, self.clock() - self._asked_s)

    def end(self, state: State, last_byte_s: float | None, folder: Path) -> None:
        """The candidate serves nothing any more; the times are kept in the folder.

        Args:
            state: Rolled back.
            last_byte_s: When the candidate's last byte came, by the clock; ``None``
                when this process saw none.
            folder: The canary's own.

        Raises:
            OSError: They cannot be kept.
        """
        asked_s, self._asked_s = self._asked_s, None
        if asked_s is None:
            return
        if last_byte_s is not None:
            self.to_last_byte_s = max(0.0, last_byte_s - asked_s)
        elif asked_s >= self._began_s:
            self.to_last_byte_s = 0.0
        body = {
            "canary": state.name,
            "attempt": state.attempt,
            "reason": state.reason,
            "at_s": self.wall(),
            "trigger_to_last_candidate_byte_s": self.to_last_byte_s,
            "trigger_to_observed_share_zero_s": self.to_share_zero_s,
        }
        text = msgspec.json.format(msgspec.json.encode(body), indent=2)
        (folder / NAME).write_bytes(text)
