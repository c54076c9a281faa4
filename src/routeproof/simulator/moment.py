"""What the engine is doing when an answer is decided, and what depends on it."""

from dataclasses import dataclass

from routeproof.simulator.ask import Ask
from routeproof.simulator.defects import When


@dataclass(frozen=True, slots=True)
class Moment:
    """What the engine is doing.

    Attributes:
        running: Sequences decoding at the same time, the asking one included.
        uptime_s: Time since the engine started.
        finished: Requests finished since then.
        cached_tokens: Tokens of this prompt that came from the prefix cache.
        neighbours: Texts of answers being written at the same time.
    """

    running: int = 1
    uptime_s: float = 0.0
    finished: int = 0
    cached_tokens: int = 0
    neighbours: tuple[str, ...] = ()


def holds(when: When, ask: Ask, class_: str, moment: Moment) -> bool:
    """Whether every given condition holds."""
    return (
        (not when.classes or class_ in when.classes)
        and moment.running >= when.running_min
        and ask.prompt_tokens >= when.prompt_tokens_min
        and moment.uptime_s >= when.uptime_min_s
        and moment.finished >= when.requests_min
        and ask.turns >= when.turns_min
        and _is(when.cached, moment.cached_tokens > 0)
        and _is(when.sampled, ask.temperature > 0.0)
        and _is(when.structured, ask.structured)
        and _is(when.with_tools, bool(ask.tools))
        and _is(when.streamed, ask.stream)
        and _is(when.thinks, ask.thinks)
        and _is(when.non_ascii, not ask.last_text.isascii())
    )


def _is(wanted: bool | None, found: bool) -> bool:
    return wanted is None or wanted is found
