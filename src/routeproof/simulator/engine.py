"""The engine core: continuous batching as a discrete-event model.

It has no clock of its own. ``begin_step`` says how long the next pass takes,
``end_step`` carries it out; whoever drives it waits for that long, really (the server)
or by setting a number (virtual time).
"""

import dataclasses
import math
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

from routeproof.simulator import draws
from routeproof.simulator.ask import Ask, BadRequest
from routeproof.simulator.book import EMPTY, Book
from routeproof.simulator.cache import PrefixCache
from routeproof.simulator.cost import Load, pass_s
from routeproof.simulator.defects import Defects
from routeproof.simulator.moment import Moment, holds
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.script import Writer
from routeproof.simulator.sequence import Emission, Sequence
from routeproof.simulator.source import ScriptSource, toy_source
from routeproof.simulator.speculating import acceptance
from routeproof.simulator.tally import Tally
from routeproof.simulator.trouble import crashes, failure, too_long, unsupported


class Engine:
    """The scheduler, its memory and its counters.

    Args:
        route: What to simulate.
        defects: What is wrong with it.
        book: Scripted answers.
    """

    def __init__(
        self, route: SimulatedRoute, defects: Defects, book: Book = EMPTY
    ) -> None:
        self.route = route
        self.defects = defects
        self.writer = Writer(route.quality, defects, book)
        self.tally = Tally()
        self.cache = PrefixCache()
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.dead = False
        self.started_s = 0.0
        self.collapsed = False
        self.leaked_kv = 0
        self.leaked_bytes = 0
        self._leaks = any(spoil.how == "leak" for spoil in defects.spoils)
        self._rng = Random(route.seed)
        self._serial = 0
        self._batch: tuple[list[Sequence], list[tuple[Sequence, int]], int] = (
            [],
            [],
            0,
        )
        self._next_pause_s = defects.engine.stop_the_world_every_s or math.inf

    # -- arrivals ---------------------------------------------------------------

    def submit(
        self, ask: Ask, now_s: float, tag: Any = None
    ) -> list[Sequence] | BadRequest:
        """Queue a request: one sequence per choice asked for, or why it is refused."""
        refused = self._refusal(ask)
        if refused is not None:
            self.tally.refused += 1
            return refused
        made = []
        n = 1 if "n" in self.defects.sampling.ignored else ask.n
        for choice in range(n):
            self._serial += 1
            sequence = Sequence(ask, self._serial, choice, now_s, tag)
            sequence.class_ = self.writer.class_of(ask)
            made.append(sequence)
        self.waiting.extend(made)
        return made

    def spoil(self, defects: Defects) -> None:
        """Go on with other defects; what has been decided stays."""
        self.defects = defects
        self.writer = dataclasses.replace(self.writer, defects=defects)
        self._leaks = any(spoil.how == "leak" for spoil in defects.spoils)

    def cancel(self, sequence: Sequence) -> None:
        """Forget a sequence whose client went away."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        if sequence in self.running:
            self.running.remove(sequence)
        sequence.failed = "cancelled"
        self.tally.finished_by_reason["abort"] += 1

    @property
    def busy(self) -> bool:
        """Whether there is anything to compute."""
        return bool(self.waiting or any(not s.stuck for s in self.running))

    @property
    def kv_capacity(self) -> int:
        """Tokens the KV cache holds in all."""
        factor = self.defects.engine.kv_capacity_factor
        return int(self.route.memory.kv_capacity_tokens * factor)

    @property
    def kv_used(self) -> int:
        """Tokens held by sequences that run, and those that were never given back."""
        return sum(s.kv_tokens for s in self.running) + self.leaked_kv

    @property
    def memory_bytes(self) -> int:
        """What the process holds: weights, drafter, the whole KV pool, leaks."""
        memory, spec = self.route.memory, self.route.speculation
        held = memory.weights_bytes + self.kv_capacity * memory.kv_token_bytes
        if spec is not None:
            held += spec.draft_memory_bytes
        return held + self.defects.engine.extra_memory_bytes + self.leaked_bytes

    def _refusal(self, ask: Ask) -> BadRequest | None:
        refused = too_long(ask, self.route.memory.context_limit_tokens)
        refused = refused or unsupported(ask, self.defects.sampling)
        wrong = self.defects.engine
        if refused is None and wrong.error_share:
            class_, moment = self.writer.class_of(ask), self._moment(0.0)
            errs = holds(wrong.error_when, ask, class_, moment)
            if errs and self._rng.random() < wrong.error_share:
                return failure(wrong)
        return refused

    # -- one pass --------------------------------------------------------------

    def begin_step(self, now_s: float) -> float:
        """Choose the batch of the next pass; how long it takes, in seconds."""
        self._admit(now_s)
        draft = self._draft_tokens()
        decoding = [s for s in self.running if s.prefill_left == 0 and not s.stuck]
        budget = self.route.timing.max_batched_tokens - len(decoding) * (1 + draft)
        prefills: list[tuple[Sequence, int]] = []
        for sequence in self.running:
            if sequence.prefill_left and budget > 0:
                chunk = min(sequence.prefill_left, budget)
                prefills.append((sequence, chunk))
                budget -= chunk
        self._batch = (decoding, prefills, draft)
        return self._duration(now_s, decoding, sum(c for _, c in prefills), draft)

    def _duration(
        self, now_s: float, decoding: list[Sequence], prefill: int, draft: int
    ) -> float:
        route, wrong = self.route, self.defects.engine
        context = sum(s.kv_tokens for s in decoding)
        load = Load(len(decoding), context, prefill, draft, len(self.running))
        step = pass_s(load, route.timing, route.speculation, wrong)
        if route.timing.jitter:
            step *= math.exp(self._rng.gauss(0.0, route.timing.jitter))
        if now_s - self.started_s >= self._next_pause_s:
            step += wrong.stop_the_world_s
            self._next_pause_s += wrong.stop_the_world_every_s or math.inf
        return step / route.speed

    def end_step(self, now_s: float) -> list[Emission]:
        """Carry out the pass that ``begin_step`` chose, which ends now."""
        decoding, prefills, draft = self._batch
        self.tally.passes += 1
        out: list[Emission] = []
        if crashes(self.defects.engine, self.running, self.tally.finished):
            return self._die(now_s)
        for sequence, chunk in prefills:
            if sequence.failed is not None:
                continue
            sequence.prefill_left -= chunk
            self.tally.computed_prompt_tokens += chunk
            if sequence.prefill_left == 0 and sequence.source is None:
                out.append(self._first_token(sequence, now_s))
        for sequence in decoding:
            if sequence.failed is None:
                out.append(self._decode(sequence, draft, now_s))
        self._make_room(now_s)
        return out

    def _first_token(self, sequence: Sequence, now_s: float) -> Emission:
        ask, wrong = sequence.ask, self.defects
        moment = self._moment(now_s, sequence)
        if self.route.answers == "toy":
            noise = self.route.toy_draft_noise
            sequence.source = toy_source(
                ask, sequence.choice, sequence.serial, wrong.sampling, noise
            )
        else:
            script = self.writer.write(ask, sequence.choice, sequence.serial, moment)
            sequence.script = script
            sequence.source = ScriptSource(
                script, Random(draws.unit(self.route.seed, ask.key, sequence.serial))
            )
        self.cache.remember(
            ask.blocks, self.kv_capacity // self.route.memory.block_tokens
        )
        if self.route.speculation is not None:
            sequence.acceptance = acceptance(
                self.route.speculation, wrong.engine, sequence, moment
            )
        sequence.first_s = now_s
        stuck = wrong.engine.stuck_share and holds(
            wrong.engine.stuck_when, ask, sequence.class_, moment
        )
        sequence.stuck = bool(stuck and self._rng.random() < wrong.engine.stuck_share)
        passed = sequence.source.step(0, ())
        self.tally.first_tokens += passed.emitted
        return self._emission(sequence, 0, passed.emitted, now_s)

    def _decode(self, sequence: Sequence, draft: int, now_s: float) -> Emission:
        source = sequence.source
        assert source is not None
        before = len(source.pieces)
        passed = source.step(draft, sequence.acceptance)
        if draft:
            accepted = passed.accepted
            sequence.spec_passes += 1
            sequence.drafted += passed.drafted
            sequence.accepted += accepted
            if not sequence.hist:
                sequence.hist = [0] * (draft + 1)
            sequence.hist[accepted] += 1
            sequence.per_step.append((passed.drafted, accepted))
            self.tally.verified(passed.drafted, accepted)
        else:
            sequence.plain_passes += 1
        return self._emission(sequence, before, passed.emitted, now_s)

    def _emission(
        self, sequence: Sequence, first: int, count: int, now_s: float
    ) -> Emission:
        source = sequence.source
        assert source is not None
        self.tally.output_tokens += count
        limit = self.route.memory.context_limit_tokens
        done = source.done or sequence.kv_tokens >= limit
        if done and not sequence.stuck:
            self._finish(sequence, now_s)
            return Emission(sequence, first, count, True)
        return Emission(sequence, first, count, False)

    def _finish(self, sequence: Sequence, now_s: float) -> None:
        sequence.end_s = now_s
        self.running.remove(sequence)
        self.leaked_kv += self.defects.engine.kv_leak_tokens
        self.leaked_bytes += self.defects.engine.memory_leak_bytes
        self.tally.finish(sequence)

    # -- queue and memory ------------------------------------------------------

    def _admit(self, now_s: float) -> None:
        limit = int(
            self.route.timing.max_running * self.defects.engine.max_running_factor
        )
        used = self.kv_used
        while self.waiting and len(self.running) < max(limit, 1):
            sequence = self.waiting[0]
            if self.running and used + sequence.ask.prompt_tokens > self.kv_capacity:
                break
            self.waiting.popleft()
            if sequence.scheduled_s is None:
                sequence.scheduled_s = now_s
                self.tally.prompt_tokens += sequence.ask.prompt_tokens
                sequence.cached = self._cached(sequence.ask)
                self.tally.cached_tokens += sequence.cached
            sequence.prefill_left = (
                sequence.ask.prompt_tokens - sequence.cached + sequence.produced
            )
            self.running.append(sequence)
            used += sequence.ask.prompt_tokens

    def _cached(self, ask: Ask) -> int:
        if not self.route.memory.prefix_cache:
            return 0
        tokens = self.cache.matched(ask.blocks) * self.route.memory.block_tokens
        return min(tokens, ask.prompt_tokens - 1)

    def _make_room(self, now_s: float) -> None:
        """Send the latest sequences back to the queue while the cache is too full."""
        used = self.kv_used
        while used > self.kv_capacity and len(self.running) > 1:
            victim = self.running.pop()
            used -= victim.kv_tokens
            victim.preemptions += 1
            victim.prefill_left = 0
            self.tally.preemptions += 1
            self.waiting.appendleft(victim)

    # -- speculation -----------------------------------------------------------

    def _draft_tokens(self) -> int:
        spec, collapse = (
            self.route.speculation,
            self.defects.engine.draft_collapse_running,
        )
        if spec is None or self.collapsed:
            return 0
        if collapse is not None and len(self.running) >= collapse:
            self.collapsed = True
            return 0
        return spec.draft_tokens

    # -- trouble ---------------------------------------------------------------

    def _die(self, now_s: float) -> list[Emission]:
        """End everything that was running or waiting, unfinished."""
        victims = [*self.running, *self.waiting]
        self.running.clear()
        self.waiting.clear()
        self.dead = True
        for sequence in victims:
            sequence.end_s = now_s
            sequence.failed = "engine died"
            self.tally.finished_by_reason["error"] += 1
        return [Emission(s, s.produced, 0, True) for s in victims]

    def restart(self, now_s: float) -> None:
        """Come back after a crash: empty cache, counters at zero."""
        self.dead = False
        self.started_s = now_s
        self.tally = Tally()
        self.cache = PrefixCache()
        self.leaked_kv = self.leaked_bytes = 0
        self.collapsed = False

    def _moment(self, now_s: float, asking: Sequence | None = None) -> Moment:
        return Moment(
            running=max(len(self.running), 1),
            uptime_s=now_s - self.started_s,
            finished=self.tally.finished,
            cached_tokens=asking.cached if asking else 0,
            neighbours=tuple(self._neighbours(asking))
            if asking and self._leaks
            else (),
        )

    def _neighbours(self, asking: Sequence) -> Iterator[str]:
        for other in self.running:
            if other is not asking and other.script is not None:
                text = "".join(p.text for p in other.script.pieces if p.kind == "text")
                if text:
                    yield text
