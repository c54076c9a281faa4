"""A traffic trace: when requests came and how long they were, no text."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from routeproof.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrivals in ascending order, one entry per request.

    Attributes:
        source: Kind of file it was read from, such as ``azure``.
        offsets_s: Seconds from the first request, shape ``(n,)``.
        input_tokens: Prompt lengths, shape ``(n,)``.
        output_tokens: Answer lengths, at least 1, shape ``(n,)``.
        classes: A class per request; empty when the trace has none.
        sessions: Number of the conversation per request, shape ``(n,)``; ``None``
            when the trace does not tell.
        prefixes: Block ids of each prompt; equal leading ids mean an equal beginning
            that a prefix cache can use. Empty when the trace does not tell.
        block_tokens: Tokens per block of ``prefixes``.
        left_out: Rows that are not requests, by reason.
    """

    source: str
    offsets_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    classes: tuple[str, ...] = ()
    sessions: Ints | None = None
    prefixes: tuple[tuple[int, ...], ...] = ()
    block_tokens: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets_s)

    @property
    def rate_per_s(self) -> float | None:
        """Mean arrivals per second; ``None`` when all came at one moment."""
        span = float(self.offsets_s[-1]) if len(self) else 0.0
        return (len(self) - 1) / span if span > 0 else None

    def take(self, index: Ints) -> "Trace":
        """The requests at ``index``, offsets counted from the first of them."""
        offsets = self.offsets_s[index]
        return replace(
            self,
            offsets_s=offsets - (offsets[0] if len(offsets) else 0.0),
            input_tokens=self.input_tokens[index],
            output_tokens=self.output_tokens[index],
            classes=tuple(self.classes[i] for i in index) if self.classes else (),
            sessions=None if self.sessions is None else self.sessions[index],
            prefixes=tuple(self.prefixes[i] for i in index) if self.prefixes else (),
        )

    def window(
        self,
        *,
        start_s: float = 0.0,
        duration_s: float | None = None,
        max_requests: int | None = None,
    ) -> "Trace":
        """The contiguous part from ``start_s`` on, not thinned out.

        Leaving out every second request would change the burstiness; a shorter
        window does not.

        Raises:
            ConfigError: No request lies in the window.
        """
        end = np.inf if duration_s is None else start_s + duration_s
        index = np.flatnonzero((self.offsets_s >= start_s) & (self.offsets_s < end))
        index = index[:max_requests]
        if not len(index):
            raise ConfigError(
                f"the trace has no request from {start_s:g} s on",
                hint=f"it ends at {self.offsets_s[-1]:g} s" if len(self) else None,
            )
        return self.take(index)

    def at_speed(self, speed: float) -> "Trace":
        """The same arrivals ``speed`` times as fast; think times shrink alike.

        Raises:
            ConfigError: ``speed`` is not positive and finite.
        """
        if not 0 < speed < float("inf"):
            raise ConfigError(f"`speed` must be positive and finite, got {speed}")
        return replace(self, offsets_s=self.offsets_s / speed)

    def at_rate(self, rate_per_s: float) -> "Trace":
        """The same pattern, sped up or slowed down to a mean rate.

        Raises:
            ConfigError: The rate is not positive, or all requests came at one moment.
        """
        own = self.rate_per_s
        if own is None:
            raise ConfigError("all requests of the trace came at one moment")
        return self.at_speed(rate_per_s / own)

    def shared_share(self) -> float | None:
        """Share of prompt blocks that an earlier prompt had as a prefix, in [0, 1].

        What an endless prefix cache would hit; ``None`` without prefix ids.
        """
        if not self.prefixes:
            return None
        seen: set[tuple[int, int]] = set()
        hits = total = 0
        for blocks in self.prefixes:
            chain = 0
            for block in blocks:
                chain = hash((chain, block))
                total += 1
                key = (chain, block)
                hits += key in seen
                seen.add(key)
        return hits / total if total else None
