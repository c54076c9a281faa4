"""One answer in the making, as the scheduler sees it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from routeproof.simulator.ask import Ask
from routeproof.simulator.script import Script
from routeproof.simulator.source import ScriptSource, ToySource


@dataclass(slots=True, eq=False)
class Sequence:
    """A request's (or one choice's) way through the engine. Times are engine seconds.

    Attributes:
        tag: Whatever the caller wants to find again.
        prefill_left: Prompt tokens still to be computed.
        hist: ``hist[j]``: verify passes in which ``j`` drafts were accepted.
        leaked: KV tokens this sequence will not give back.
    """

    ask: Ask
    serial: int
    choice: int
    arrived_s: float
    tag: Any = None
    class_: str = "unknown"
    scheduled_s: float | None = None
    first_s: float | None = None
    end_s: float | None = None
    prefill_left: int = 0
    cached: int = 0
    source: ScriptSource | ToySource | None = None
    script: Script | None = None
    acceptance: tuple[float, ...] = ()
    drafted: int = 0
    accepted: int = 0
    spec_passes: int = 0
    plain_passes: int = 0
    hist: list[int] = field(default_factory=list)
    per_step: list[tuple[int, int]] = field(default_factory=list)
    preemptions: int = 0
    failed: str | None = None
    stuck: bool = False

    @property
    def produced(self) -> int:
        """Tokens of the answer so far."""
        return len(self.source.pieces) if self.source else 0

    @property
    def kv_tokens(self) -> int:
        """Tokens it holds in the KV cache."""
        return self.ask.prompt_tokens - self.prefill_left + self.produced

    @property
    def text(self) -> str:
        """The visible text so far."""
        if self.source is None:
            return ""
        return "".join(p.text for p in self.source.pieces if p.kind == "text")


class Emission(NamedTuple):
    """Tokens of a sequence that a pass brought.

    Attributes:
        first: Index of the first new piece.
        new: Number of new pieces, may be 0 at the end of a sequence.
        done: Whether the sequence has ended (well or not: see ``Sequence.failed``).
    """

    sequence: Sequence
    first: int
    new: int
    done: bool
