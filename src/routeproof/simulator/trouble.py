"""When a defective engine refuses, breaks or hangs."""

from collections.abc import Sequence as Many

from routeproof.simulator.ask import Ask, BadRequest
from routeproof.simulator.defects import EngineDefects, SamplingDefects
from routeproof.simulator.sequence import Sequence


def too_long(ask: Ask, limit: int) -> BadRequest | None:
    """Why a prompt does not fit the context; ``None`` when it does."""
    if ask.prompt_tokens <= limit:
        return None
    words = f"the prompt has {ask.prompt_tokens} tokens, the context length is {limit}"
    return BadRequest(400, words, parameter="messages")


def unsupported(ask: Ask, wrong: SamplingDefects) -> BadRequest | None:
    """The first request field that this engine refuses; ``None`` when it takes all."""
    for name in wrong.refused:
        if ask.body.get(name) is not None:
            return BadRequest(400, f"{name} is not supported here", parameter=name)
    return None


def crashes(wrong: EngineDefects, running: Many[Sequence], finished: int) -> bool:
    """Whether the engine dies now."""
    limits = (
        (wrong.crash_running, len(running)),
        (wrong.crash_requests, finished),
        (
            wrong.crash_prompt_tokens,
            max((s.ask.prompt_tokens for s in running), default=0),
        ),
    )
    if wrong.crash_logprobs and any(s.ask.logprobs for s in running):
        return True
    return any(limit is not None and seen >= limit for limit, seen in limits)


def failure(wrong: EngineDefects) -> BadRequest:
    """What a request gets that fails for no fault of its own."""
    if wrong.error_status == 429:
        return BadRequest(429, "too many requests", "RateLimitError")
    return BadRequest(wrong.error_status, "internal error", "InternalServerError")
