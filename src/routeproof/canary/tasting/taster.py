"""The thread that tastes: copies to samples to signals to evidence, off the loop.

A bounded queue stands between the relay and this thread; what does not fit is dropped
and counted by arm. Samples are spooled before they are scored, so that a restart
scores what was left over. Whatever breaks in here (an answer no scorer expected, a
hook, the disk) is counted and makes the evidence stale; the thread lives.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic_ns

import msgspec

from routeproof.canary.samples.cleaning import Cleaner, kept_fields
from routeproof.canary.samples.signals import (
    SIGNALS,
    Signal,
    Tasting,
    taste,
    text_of_prompt,
)
from routeproof.canary.samples.slices import Percentiles, SliceRow, Slices
from routeproof.canary.samples.spool import Sample, Shadow, Spool
from routeproof.canary.splitting.split import LiveArm
from routeproof.canary.tasting.shadow_pairs import (
    CopiedPair,
    TastedPair,
    differences,
    why_no_pair,
)
from routeproof.canary.tasting.tee import Copy
from routeproof.canary.tasting.waiting import Waiting
from routeproof.canary.weighing.evidence import Evidence, SignalState, Standing
from routeproof.canary.weighing.health import OPINION, SCORER, Ledger
from routeproof.canary.weighing.policies import (
    ASKED,
    PREFERENCE,
    SHADOW,
    SHADOW_OFF_TOPIC,
)
from routeproof.engines.adapter import Adapter
from routeproof.errors import StoredRunError

BATCH = 64
PAIRING = "shadow"
"""Name under which failing replays are kept count of."""

OPINIONS = frozenset({PAIRING, PREFERENCE, SHADOW_OFF_TOPIC, *ASKED})
"""Kept count of with the limits of those who are asked."""

OPENED = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
"""Packings of an answer that are undone on the side."""

Tasted = Callable[[Sample, Copy], None]
Paired = Callable[[TastedPair], None]


@dataclass(slots=True)
class Taster:
    """Scores sampled answers in a thread of its own.

    Attributes:
        adapter: Knows the candidate engine's per-request details.
        slo: Limits in seconds for the ``slow`` signals.
        signals: What is asked of each answer.
        lag_max_s: Scores older than this behind make the evidence stale.
        drop_difference_max: Drop shares of the arms may differ by this much.
        cleaner: Redacts before anything is stored.
        on_tasted, on_paired: Told of each scored sample and pair, in this thread.
        last_error: What broke last, in words; ``None`` while all is well.
        disk_error: Why samples cannot be kept.
        memory_error: Why the evidence would not outlive a restart.
    """

    spool: Spool
    evidence: Evidence
    adapter: Adapter
    slo: Mapping[str, float]
    wall: Callable[[], float]
    signals: Mapping[str, Signal] = field(default_factory=lambda: SIGNALS)
    keep_prompts: bool = False
    lag_max_s: float = 300.0
    drop_difference_max: float = 0.05
    cleaner: Cleaner = field(default_factory=Cleaner)
    queue_size: int = 1_000
    now_ns: Callable[[], int] = monotonic_ns
    on_tasted: list[Tasted] = field(default_factory=list)
    on_paired: list[Paired] = field(default_factory=list)
    last_error: str | None = field(default=None, init=False)
    disk_error: str | None = field(default=None, init=False)
    memory_error: str | None = field(default=None, init=False)
    taken: Counter[str] = field(default_factory=Counter, init=False)
    dropped: Counter[str] = field(default_factory=Counter, init=False)
    pairs: Counter[str] = field(default_factory=Counter, init=False)
    ledger: Ledger = field(init=False)
    slices: Slices = field(default_factory=Slices, init=False)
    _waiting: "Waiting[Copy | CopiedPair]" = field(init=False)
    _oldest_ns: int | None = field(default=None, init=False)
    _moved_ns: int = field(default=0, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._waiting = Waiting(self.queue_size)
        self.ledger = Ledger(lambda name: OPINION if name in OPINIONS else SCORER)
        self.dropped.update(self.spool.dropped())
        self.taken.update(self.dropped)

    def put(self, copy: Copy) -> None:
        """Take a finished copy, or drop it; called on the event loop."""
        self.taken[copy.arm] += 1
        if copy.is_too_large:
            self.dropped[copy.arm] += 1
            return
        if not self._waiting.put(copy):
            self.dropped[copy.arm] += 1

    def put_pair(self, pair: CopiedPair) -> bool:
        """Take a live exchange with its replay; false when there is no room."""
        if pair.live.is_too_large or pair.replay.is_too_large:
            return False
        return self._waiting.put(pair)

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
        self._waiting.end()
        self._thread.join()
        self._thread = None

    def _work(self) -> None:
        self._guarded(self._left_over)
        is_over = False
        while not is_over:
            batch, is_over = self._waiting.batch(BATCH)
            if batch:
                self._moved_ns = self.now_ns()
                self._oldest_ns = _ended_ns(batch[0])
                self._guarded(partial(self._taste_all, batch))
                self._oldest_ns = None

    def _taste_all(self, batch: list[Copy | CopiedPair]) -> None:
        """Spool first, then score: a restart finds what was not scored."""
        copies = [each for each in batch if isinstance(each, Copy)]
        kept: list[tuple[Sample, Copy]] = []
        try:
            with self.spool.together():
                for copy in copies:
                    sample = self._sample(copy)
                    if sample is None:
                        continue
                    if self.spool.add(sample, response_id=copy.response_id()):
                        kept.append((sample, copy))
                    else:
                        self.dropped[sample.arm] += 1
        except StoredRunError:
            self.dropped.update(copy.arm for copy in copies)
            raise
        with self.spool.together():
            for sample, copy in kept:
                self._score(sample, copy)
            for each in batch:
                if isinstance(each, CopiedPair):
                    self._pair(each)

    def _guarded(self, act: Callable[[], None]) -> None:
        """The border of this thread: what breaks is said, and the next batch comes."""
        try:
            act()
            self.last_error = self.disk_error = None
        except StoredRunError as error:
            self.last_error = self.disk_error = error.message
        except Exception as error:  # a dead thread would score nothing any more
            self.last_error = f"{type(error).__name__} while tasting"

    def _left_over(self) -> None:
        for sample in self.spool.unscored(limit=self.spool.limit):
            self._score(sample, None)

    def _sample(self, copy: Copy) -> Sample | None:
        """The exchange, redacted; ``None`` (dropped, counted) when it breaks a hook.

        What cannot be redacted is not kept.
        """
        now_s = self.wall()
        packed = copy.capture.header("content-encoding") or "identity"
        if packed.strip().lower() not in OPENED:
            # Both arms' answers of this kind are unknown, and none of them an error.
            self.dropped[copy.arm] += 1
            self.ledger.note("reading", copy.arm, f"packed with `{packed[:20]}`")
            return None
        try:
            cleaner = self.cleaner.knowing(copy.caller_key)
            clean = cleaner.record(copy.record(self.adapter, now_s))
            messages = copy.body.get("messages") if self.keep_prompts else None
            prompt = cleaner.value(messages)
            request = cleaner.value(kept_fields(copy.body))
        except Exception as error:  # a hook's code, or a parser's on foreign bytes
            self.dropped[copy.arm] += 1
            self.ledger.note("reading", copy.arm, f"{type(error).__name__} on reading")
            return None
        self.ledger.note("reading", copy.arm, None)
        return Sample(
            request_id=copy.request_id,
            arm=copy.arm,
            at_s=now_s,
            stratum=copy.stratum,
            request=request,
            prompt=prompt,
            record=clean,
            owner=copy.owner,
        )

    def _signals(self, sample: Sample, copy: Copy | None) -> dict[str, bool | None]:
        prompt = "" if copy is None else text_of_prompt(copy.body)
        arm = sample.arm
        return taste(
            Tasting(sample, prompt, self.slo),
            self.signals,
            lambda name, problem: self.ledger.note(name, arm, problem),
        )

    def _score(self, sample: Sample, copy: Copy | None) -> None:
        scored = msgspec.structs.replace(sample, signals=self._signals(sample, copy))
        self._moved_ns = self.now_ns()
        self.spool.score(scored)
        with self._lock:
            self.evidence.take(scored, None if copy is None else copy.unit)
            self.slices.take(scored)
        if copy is not None:
            for tell in self.on_tasted:
                tell(scored, copy)

    def _pair(self, pair: CopiedPair) -> None:
        """Compare a replay with its live twin; what is no pair is counted as such."""
        live, replay = self._sample(pair.live), self._sample(pair.replay)
        if live is None or replay is None:
            self.pairs["unreadable"] += 1
            return
        why = why_no_pair(live, replay)
        if why != "cancelled":
            self.ledger.note(PAIRING, replay.arm, why)
        if why is not None:
            self.pairs[why] += 1
            return
        self.pairs["compared"] += 1
        both = [
            msgspec.structs.replace(one, signals=self._signals(one, copy))
            for one, copy in ((live, pair.live), (replay, pair.replay))
        ]
        tasted = TastedPair(both[0], both[1], pair.live.body)
        self.note_pair(
            differences(tasted),
            live.request_id,
            Shadow(arm=replay.arm, record=replay.record, signals=both[1].signals or {}),
        )
        for tell in self.on_paired:
            tell(tasted)

    def note_pair(
        self,
        found: Mapping[str, float],
        request_id: str,
        shadow: Shadow | None = None,
        *,
        preference: float | None = None,
    ) -> None:
        """Take in what was found in a pair, and keep it beside the sample."""
        with self._lock:
            for name, difference in found.items():
                policy = self.evidence.policies.get(name)
                if policy is not None and policy.is_paired:
                    self.evidence.observe_pair(name, difference)

        def change(kept: Sample) -> Sample:
            fresh = shadow or kept.shadow
            if fresh is not None and preference is not None:
                fresh = msgspec.structs.replace(fresh, preference=preference)
            return msgspec.structs.replace(kept, shadow=fresh)

        if shadow is not None or preference is not None:
            self.spool.change(request_id, change)

    def note_opinion(self, sample: Sample, found: Mapping[str, bool | None]) -> None:
        """Take in what somebody who was asked says of a sample, and keep it."""
        for name, bad in found.items():
            if bad is not None and sample.arm != "baseline":
                is_canary = sample.arm == "canary"
                self.observe(name, is_canary=is_canary, bad=bad, stratum=sample.stratum)
        self.spool.change(
            sample.request_id,
            lambda kept: msgspec.structs.replace(
                kept, signals={**(kept.signals or {}), **found}
            ),
        )

    def observe(self, name: str, *, is_canary: bool, bad: bool, stratum: str) -> None:
        """Take in one outcome that is not in the answer itself, such as feedback."""
        with self._lock:
            policy = self.evidence.policies.get(name)
            if policy is not None and not policy.is_paired:
                self.evidence.observe(name, is_canary, bad, stratum)

    def enter_step(self, canary_share: float) -> None:
        """Ask every signal for safety anew; see ``Evidence.canary_share``."""
        with self._lock:
            self.evidence.enter_step(canary_share)

    def begin_anew(self) -> None:
        """Forget all evidence: another attempt begins."""
        with self._lock:
            self.evidence.restore(
                {name: SignalState() for name in self.evidence.policies}
            )

    def remembered(self) -> dict[str, SignalState]:
        """What the evidence needs to go on after a restart."""
        with self._lock:
            return self.evidence.state()

    def rejection(self) -> dict[str, float | None]:
        """Share of drafted tokens that were not accepted, by arm, since the start."""
        with self._lock:
            return self.slices.rejection()

    def latency(self) -> list[Percentiles]:
        """Percentiles of recent served samples, by timing and arm."""
        with self._lock:
            return self.slices.latency()

    def slice_rows(self) -> list[SliceRow]:
        """Acceptance and quality by slice and arm."""
        with self._lock:
            return self.slices.rows()

    def standings(self) -> list[Standing]:
        """Where every signal stands; stale when scores lag or drops are unequal."""
        troubles = self.ledger.troubles()
        if PAIRING in troubles:
            paired = [n for n in self.evidence.policies if n.startswith(SHADOW)]
            troubles = {**dict.fromkeys(paired, troubles[PAIRING]), **troubles}
        stale = self.staleness()
        with self._lock:
            return self.evidence.standings(stale=stale, troubles=troubles)

    def lag_s(self) -> float:
        """How long the oldest answer that is not scored yet has waited, in seconds."""
        first = self._waiting.first()
        waiting = self._oldest_ns or (None if first is None else _ended_ns(first))
        return 0.0 if not waiting else max(0.0, (self.now_ns() - waiting) / 1e9)

    def is_alive(self) -> bool:
        """False once the thread that should score has ended by itself."""
        return self._thread is None or self._thread.is_alive()

    def stuck_s(self) -> float:
        """How long the answer under way has been looked at; 0 without one."""
        if self._oldest_ns is None:
            return 0.0
        return max(0.0, (self.now_ns() - self._moved_ns) / 1e9)

    def staleness(self) -> str | None:
        """Why the evidence cannot be trusted now, or ``None``."""
        if not self.is_alive():
            return "the scorer is not running"
        if self.last_error is not None or self.memory_error is not None:
            return self.last_error or self.memory_error
        if self._waiting.is_full():
            return "the scorer does not keep up"
        lag_s = self.lag_s()
        if lag_s > self.lag_max_s:
            return f"scores lag {lag_s:.0f} s behind"
        arms: tuple[LiveArm, ...] = ("control", "canary")
        shares = {a: self.dropped[a] / self.taken[a] for a in arms if self.taken[a]}
        if shares and max(shares.values()) - min(shares.values()) > (
            self.drop_difference_max
        ):
            said = ", ".join(f"{share:.1%} of {arm}" for arm, share in shares.items())
            return f"samples were dropped unequally: {said}"
        return None


def _ended_ns(item: Copy | CopiedPair) -> int:
    copy = item if isinstance(item, Copy) else item.replay
    return copy.capture.end_ns
