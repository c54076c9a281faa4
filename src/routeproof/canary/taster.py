"""The thread that tastes: copies to samples to signals to evidence, off the loop.

A bounded queue stands between the relay and this thread; what does not fit is dropped
and counted by arm. Samples are spooled before they are scored, so that a restart
scores what was left over.
"""

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from routeproof.canary.evidence import Evidence, Standing
from routeproof.canary.redact import Redactor, redact
from routeproof.canary.samples import Sample, Spool
from routeproof.canary.signals import Tasting, taste
from routeproof.canary.tee import Copy
from routeproof.engines.adapter import Adapter
from routeproof.errors import StoredRunError
from routeproof.records.outcome import SERVED
from routeproof.records.record import Record

KEPT_FIELDS = (
    "response_format",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "stop",
    "stream",
    "n",
)
"""Request fields a sample keeps; the prompt is not among them."""

_STOP = None
BATCH = 64


@dataclass(slots=True)
class Taster:
    """Scores sampled answers in a thread of its own.

    Attributes:
        adapter: Knows the candidate engine's per-request details.
        slo: Limits in seconds for the ``slow`` signals.
        lag_max_s: Scores older than this behind make the evidence stale.
        drop_difference_max: Drop shares of the arms may differ by this much.
        redactors: Run after the built-in patterns.
        last_error: The spool's last failure in words.
    """

    spool: Spool
    evidence: Evidence
    adapter: Adapter
    slo: Mapping[str, float]
    wall: Callable[[], float]
    keep_prompts: bool = False
    lag_max_s: float = 300.0
    drop_difference_max: float = 0.05
    redactors: tuple[Redactor, ...] = ()
    queue_size: int = 1_000
    last_error: str | None = field(default=None, init=False)
    taken: Counter[str] = field(default_factory=Counter, init=False)
    dropped: Counter[str] = field(default_factory=Counter, init=False)
    on_scored: Callable[[Sample], None] | None = None
    _recent_s: dict[str, deque[float]] = field(default_factory=dict, init=False)
    _drafts: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _queue: "queue.Queue[Copy | None]" = field(init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._queue = queue.Queue(maxsize=self.queue_size)
        self.dropped.update(self.spool.dropped())

    def put(self, copy: Copy) -> None:
        """Take a finished copy, or drop it; called on the event loop."""
        self.taken[copy.arm] += 1
        if copy.is_too_large:
            self.dropped[copy.arm] += 1
            return
        try:
            self._queue.put_nowait(copy)
        except queue.Full:
            self.dropped[copy.arm] += 1

    def start(self) -> None:
        """Score what a former life left unscored, then what comes."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._work, daemon=True, name="taster")
        self._thread.start()

    def stop(self) -> None:
        """Finish what is queued and end the thread."""
        if self._thread is None:
            return
        self._queue.put(_STOP)
        self._thread.join()
        self._thread = None

    def _work(self) -> None:
        self._guarded(self._left_over)
        while (batch := self._batch()) is not None:
            self._guarded(lambda batch=batch: self._taste_all(batch))  # type: ignore[misc]

    def _batch(self) -> list[Copy] | None:
        """What is queued, at most ``BATCH``; ``None`` when the end is reached."""
        batch: list[Copy] = []
        copy = self._queue.get()
        while copy is not _STOP:
            batch.append(copy)
            if len(batch) >= BATCH or self._queue.empty():
                return batch
            copy = self._queue.get()
        if batch:
            self._queue.put(_STOP)
            return batch
        return None

    def _taste_all(self, batch: list[Copy]) -> None:
        """Spool first, then score: a restart finds what was not scored."""
        kept: list[tuple[Sample, str]] = []
        with self.spool.together():
            for copy in batch:
                sample = self._sample(copy)
                if self.spool.add(sample, response_id=copy.response_id()):
                    kept.append((sample, str(copy.body.get("_prompt", ""))))
                else:
                    self.dropped[sample.arm] += 1
        with self.spool.together():
            for sample, prompt in kept:
                self._score(sample, prompt)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
            self.last_error = None
        except StoredRunError as error:
            self.last_error = error.message

    def _left_over(self) -> None:
        for sample in self.spool.unscored(limit=self.spool.limit):
            self._score(sample, prompt="")

    def _sample(self, copy: Copy) -> Sample:
        now_s = self.wall()
        kept = {k: copy.body[k] for k in KEPT_FIELDS if k in copy.body}
        prompt = (
            self._redacted(copy.body.get("messages")) if self.keep_prompts else None
        )
        return Sample(
            request_id=copy.request_id,
            arm=copy.arm,
            at_s=now_s,
            stratum=copy.stratum,
            request=kept,
            prompt=prompt,
            record=self._clean(copy.record(self.adapter, now_s)),
            owner=copy.owner,
        )

    def _clean(self, record: Record) -> Record:
        """The record with its texts redacted and the bulky parts left out."""
        said = record.answer
        answer = msgspec.structs.replace(
            said,
            text=None if said.text is None else self._red(said.text),
            reasoning=None,
            tool_calls=None if said.tool_calls is None else self._red(said.tool_calls),
            error=None if said.error is None else self._red(said.error),
            choices=None,
            logprobs=None,
            token_ids=None,
        )
        return msgspec.structs.replace(record, answer=answer)

    def _red(self, text: str) -> str:
        return redact(text, hooks=self.redactors)

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._red(value)
        if isinstance(value, list):
            return [self._redacted(each) for each in value]
        if isinstance(value, dict):
            return {key: self._redacted(each) for key, each in value.items()}
        return value

    def _score(self, sample: Sample, prompt: str) -> None:
        signals = taste(Tasting(sample, prompt, self.slo))
        scored = msgspec.structs.replace(sample, signals=signals)
        self.spool.score(scored)
        clock = sample.record.clock
        with self._lock:
            self.evidence.take(scored)
            self._count_drafts(sample)
            if sample.record.answer.outcome in SERVED and clock.end_s is not None:
                recent = self._recent_s.setdefault(sample.arm, deque(maxlen=2_000))
                recent.append(clock.end_s - clock.intended_s)
        if self.on_scored is not None:
            self.on_scored(scored)

    def _count_drafts(self, sample: Sample) -> None:
        engine = sample.record.engine
        if engine.drafted is not None and engine.accepted is not None:
            self._drafts[sample.arm, "drafted"] += engine.drafted
            self._drafts[sample.arm, "accepted"] += engine.accepted

    def rejection(self) -> dict[str, float | None]:
        """Share of drafted tokens that were not accepted, by arm, since the start.

        ``None`` where the engine reports no drafts per request.
        """
        with self._lock:
            drafts = dict(self._drafts)
        return {
            arm: 1 - drafts[arm, "accepted"] / drafts[arm, "drafted"]
            if drafts.get((arm, "drafted"))
            else None
            for arm in ("control", "canary")
        }

    def observe(self, name: str, *, is_canary: bool, bad: bool, stratum: str) -> None:
        """Take in one outcome that is not in the answer itself, such as feedback."""
        with self._lock:
            if name in self.evidence.policies:
                self.evidence.observe(name, is_canary, bad, stratum)

    def enter_step(self) -> None:
        """Ask every signal for safety anew."""
        with self._lock:
            self.evidence.enter_step()

    def standings(self) -> list[Standing]:
        """Where every signal stands; stale when scores lag or drops are unequal."""
        with self._lock:
            return self.evidence.standings(is_stale=self.staleness() is not None)

    def latency(self) -> dict[str, dict[str, float | None]]:
        """Median and 95th percentile of recent served samples, in seconds, by arm.

        ``None`` with fewer than 20 (median) or 60 (95th) samples. Nearest rank.
        """
        with self._lock:
            kept = {arm: sorted(values) for arm, values in self._recent_s.items()}
        return {
            arm: {
                "p50": values[(len(values) - 1) // 2] if len(values) >= 20 else None,
                "p95": values[int(0.95 * len(values))] if len(values) >= 60 else None,
                "n": float(len(values)),
            }
            for arm, values in kept.items()
        }

    def staleness(self) -> str | None:
        """Why the evidence cannot be trusted now, or ``None``."""
        if self._thread is not None and not self._thread.is_alive():
            return "the scorer is not running"
        if self.last_error is not None:
            return self.last_error
        if self._queue.qsize() >= self.queue_size:
            return "the scorer does not keep up"
        shares = {
            arm: self.dropped[arm] / self.taken[arm]
            for arm in ("canary", "control")
            if self.taken[arm]
        }
        if shares and max(shares.values()) - min(shares.values()) > (
            self.drop_difference_max
        ):
            return f"samples were dropped unequally: {shares}"
        return None
