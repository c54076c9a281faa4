"""The engine's own counters, from which every metrics page is written."""

from collections import Counter, deque
from dataclasses import dataclass, field

from routeproof.simulator.sequence import Sequence


@dataclass(slots=True)
class Tally:
    """Counts since the engine started; times in engine seconds."""

    passes: int = 0
    refused: int = 0
    finished: int = 0
    prompt_tokens: int = 0
    computed_prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    first_tokens: int = 0
    preemptions: int = 0
    spec_passes: int = 0
    drafted: int = 0
    accepted: int = 0
    accepted_at: list[int] = field(default_factory=list)
    drafted_at: list[int] = field(default_factory=list)
    verify_calls_finished: int = 0
    recent: deque[Sequence] = field(default_factory=lambda: deque(maxlen=1000))
    finished_by_reason: Counter[str] = field(default_factory=Counter)
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    first_token_s: float = 0.0
    latency_s: float = 0.0
    longest_tokens: int = 0

    def verified(self, drafted: int, accepted: int) -> None:
        """Count one verify pass of one sequence."""
        self.spec_passes += 1
        self.drafted += drafted
        self.accepted += accepted
        while len(self.accepted_at) < drafted:
            self.accepted_at.append(0)
            self.drafted_at.append(0)
        for position in range(drafted):
            self.drafted_at[position] += 1
            if position < accepted:
                self.accepted_at[position] += 1

    def finish(self, sequence: Sequence) -> None:
        """Count the end of a sequence that ended well, and remember the last ones."""
        self.recent.append(sequence)
        self.finished += 1
        reason = sequence.source.finish if sequence.source else "error"
        self.finished_by_reason["stop" if reason == "tool_calls" else reason] += 1
        self.verify_calls_finished += sequence.spec_passes
        self.longest_tokens = max(self.longest_tokens, sequence.kv_tokens)
        first = sequence.first_s or sequence.arrived_s
        scheduled = sequence.scheduled_s or sequence.arrived_s
        end = sequence.end_s or first
        self.queue_s += scheduled - sequence.arrived_s
        self.prefill_s += first - scheduled
        self.decode_s += end - first
        self.first_token_s += first - sequence.arrived_s
        self.latency_s += end - sequence.arrived_s
