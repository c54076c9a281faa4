"""Watches the client while it sends, and collects what ``runs.health`` judges."""

import asyncio
import re
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from routeproof.records.record import Record
from routeproof.runs.blocks import Block
from routeproof.runs.capture import Capture
from routeproof.runs.health import LATE_FIRST_SHARE, quantile

LAG_EVERY_S = 0.02
_PROXY_HEADERS = ("via", "x-cache", "cf-ray", "x-served-by")
_PROXY_SERVERS = re.compile(
    r"nginx|openresty|envoy|haproxy|traefik|caddy|apache|cloudflare|squid|varnish|awselb"
    r"|cloudfront|istio|kong|litellm",
    re.IGNORECASE,
)
"""What the header ``server`` says when it is not the engine itself that answers."""


def _doubles() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class _Level:
    """Sums and samples of one arm, phase and level."""

    requests: int = 0
    not_started: int = 0
    chunks: int = 0
    coalesced: int = 0
    streams: int = 0
    late_first: int = 0
    opened: int = 0
    lag_s: "array[float]" = field(default_factory=_doubles)
    delay_s: "array[float]" = field(default_factory=_doubles)
    first_s: "array[float]" = field(default_factory=_doubles)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    due_span_s: float = 0.0
    sent_span_s: float = 0.0
    busy_s: float = 0.0
    asked_s: float = 0.0

    def numbers(self) -> dict[str, float | None]:
        """What ``judge_client`` takes; ``None`` where nothing can be said."""
        return {
            "requests": float(self.requests),
            "loop_lag_samples": float(len(self.lag_s)),
            "loop_lag_p99_s": quantile(self.lag_s, 0.99),
            "dispatch_delay_p99_s": quantile(self.delay_s, 0.99),
            "first_chunk_p50_s": quantile(self.first_s, 0.5),
            "rate_share": _share(self.due_span_s, self.sent_span_s),
            "concurrency_share": _share(self.busy_s, self.asked_s),
            "not_started_share": _share(self.not_started, self.requests),
            "coalesced_share": _share(self.coalesced, self.chunks),
            "late_first_share": _share(self.late_first, self.streams),
            "cpu_share": _share(self.cpu_s, self.wall_s),
            "connections_opened": float(self.opened),
        }


class Watch:
    """One per run. Blocks are entered and left; records are shown to it as parsed."""

    def __init__(self) -> None:
        self._levels: dict[str, _Level] = {}
        self._sent: list[tuple[float, float, str]] = []
        self._began = (0.0, 0.0)
        self._notes: list[str] = []
        self.intermediaries: dict[str, set[str]] = {}

    def enter(self) -> None:
        """A block begins."""
        self._sent.clear()
        self._began = (time.monotonic(), time.process_time())

    def leave(self, block: Block, opened: int) -> None:
        """A block has ended and all its records have been seen."""
        level = self._level(f"{block.arm}/{block.phase}/{block.level}")
        level.wall_s += time.monotonic() - self._began[0]
        level.cpu_s += time.process_time() - self._began[1]
        level.opened += opened
        if len(self._sent) < 2:
            return
        self._sent.sort()
        first_s, last_s = self._sent[0][0], self._sent[-1][0]
        turns = turns_of(block)
        if block.offsets_s is not None:
            # Later turns are due by the answers before them, not by the schedule.
            at = [s for s, _, name in self._sent if not turns or turns(name)[0]]
            level.due_span_s += float(block.offsets_s[-1] - block.offsets_s[0])
            level.sent_span_s += at[-1] - at[0] if at else 0.0
        elif block.concurrency is not None:
            # Until the last request was begun every slot had work to do; who thinks
            # is at work too.
            level.busy_s += sum(
                min(end, last_s) - begin + (turns(name)[1] if turns else 0.0)
                for begin, end, name in self._sent
            )
            level.asked_s += block.concurrency * (last_s - first_s)
            if block.starts_s is not None:
                ramp_s = block.starts_s[: block.concurrency]
                level.asked_s -= float(np.minimum(ramp_s, last_s - first_s).sum())

    def see(self, record: Record, capture: Capture) -> None:
        """Take the numbers of one record."""
        key, clock, stream = record.key, record.clock, record.stream
        level = self._level(f"{key.arm}/{key.phase}/{key.level}")
        level.requests += 1
        if record.answer.outcome == "not_started":
            level.not_started += 1
        if clock.dispatched_s is None or clock.end_s is None:
            return
        self._sent.append((clock.dispatched_s, clock.end_s, key.request_id))
        level.delay_s.append(clock.dispatched_s - clock.intended_s)
        chunks = stream.chunk_s
        if chunks:
            level.first_s.append(chunks[0] - clock.dispatched_s)
        if len(chunks) > 1:
            level.streams += 1
            level.chunks += len(chunks)
            level.coalesced += stream.coalesced_reads
            before = chunks[0] - clock.dispatched_s
            whole = chunks[-1] - clock.dispatched_s
            is_late = before >= LATE_FIRST_SHARE * whole
            # Two chunks that meet are chance; most of many that meet are not.
            if is_late and stream.coalesced_reads * 2 > len(chunks) > 3:
                level.late_first += 1
        self._headers(key.arm, capture)

    async def sample_lag(self, block: Block) -> None:
        """Run beside a block: how late does the event loop come round?"""
        lag = self._level(f"{block.arm}/{block.phase}/{block.level}").lag_s
        while True:
            began = time.monotonic()
            await asyncio.sleep(LAG_EVERY_S)
            # uvloop's timers count whole milliseconds: up to one is no lag.
            late_s = time.monotonic() - began - LAG_EVERY_S - 0.001
            lag.append(max(late_s, 0.0))

    def numbers(self) -> Mapping[str, dict[str, float | None]]:
        """By ``arm/phase/level``, warm-up left out."""
        return {
            place: level.numbers()
            for place, level in self._levels.items()
            if place.split("/")[1] != "warmup"
        }

    def note(self, sentence: str) -> None:
        """Keep something that explains the run."""
        self._notes.append(sentence)

    def notes(self) -> list[str]:
        """What was noted, and what proxies said of themselves, per arm."""
        return self._notes + [
            f"{arm}: answers passed through {', '.join(sorted(names))}"
            for arm, names in sorted(self.intermediaries.items())
            if names
        ]

    def _level(self, place: str) -> _Level:
        found = self._levels.get(place)
        if found is None:
            found = self._levels[place] = _Level()
        return found

    def _headers(self, arm: str, capture: Capture) -> None:
        if arm in self.intermediaries:
            return
        names = {
            f"{name}: {value[:80]}"
            for name, value in capture.headers
            if name in _PROXY_HEADERS
            or (name == "server" and _PROXY_SERVERS.search(value))
        }
        self.intermediaries[arm] = names


def turns_of(block: Block) -> Callable[[str], tuple[bool, float]] | None:
    """From a request's id to whether it begins a session, and its think time.

    ``None`` for a block without sessions.
    """
    if not block.sessions:
        return None
    turns = [
        (number == 0, turn.think_s)
        for session in block.sessions
        for number, turn in enumerate(session.turns)
    ]
    before = sum(len(s.turns) for s in block.sessions[: block.position])
    return lambda name: turns[(before + int(name.rpartition("/")[2])) % len(turns)]


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
