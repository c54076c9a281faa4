"""How likely the baseline finds an answer: its own opinion of what the canary said.

Likelihood moves with damage and with harmless change alike; it locates a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from routeproof.canary.tasting.asked_http import Endpoint
from routeproof.canary.tasting.graders import NONE, Exchange, Floor, Opinion
from routeproof.scorers.likelihood import reference_likelihood
from routeproof.scorers.score import ScoredAnswer
from routeproof.workloads.case import Case


@dataclass(slots=True)
class LikelihoodGrader:
    """How likely the baseline finds an answer, where it says so.

    Two ways are known: completions with ``echo`` and ``logprobs``; chat with
    ``prompt_logprobs`` and the answer as the beginning of its own turn. An engine
    that answers without log-probabilities is not asked again.

    Attributes:
        endpoint: The baseline's.
        is_offered: False once the engine answered without log-probabilities.
    """

    endpoint: Endpoint
    floor: Floor = field(default_factory=Floor)
    is_offered: bool = True

    def __call__(self, exchanges: Sequence[Exchange]) -> list[Opinion]:
        """An opinion per exchange, in order."""
        return [self._one(exchange) for exchange in exchanges]

    def _one(self, exchange: Exchange) -> Opinion:
        if not self.is_offered or not exchange.answer or not exchange.question:
            return NONE
        is_chat = exchange.path.endswith("/chat/completions")
        build, read = (_chat, _read_prompt) if is_chat else (_echo, _read_echo)
        status, body = self.endpoint.post(exchange.path, build(exchange))
        if status != 200:
            if 400 <= status < 500 and status not in (401, 403, 408, 429):
                self.is_offered = False
            return Opinion(problem=f"the baseline answered with status {status}")
        rows = read(body)
        if rows is None:
            self.is_offered = False
            return Opinion(problem="the baseline gives no log-probabilities")
        found = likelihood(exchange.answer, rows)
        if found is None:
            return Opinion(problem="the answer is not in what the baseline read")
        return Opinion(bad=self.floor.is_below(found, exchange.sample))


def likelihood(answer: str, rows: list[list[Any]]) -> float | None:
    """Geometric mean probability of an answer's tokens.

    Args:
        answer: The text.
        rows: ``[token, logprob, []]`` of prompt and answer together.

    Returns:
        In [0, 1]; ``None`` when the answer is not found among the tokens.
    """
    case = Case(
        id="live",
        class_="live",
        prompt="",
        reference=answer,
        scorers=("reference_likelihood",),
    )
    seen = ScoredAnswer(text=answer, logprobs=msgspec.json.encode(rows).decode())
    return reference_likelihood(case, seen).value


def _chat(exchange: Exchange) -> dict[str, Any]:
    messages = exchange.body.get("messages")
    turn = {"role": "assistant", "content": exchange.answer}
    return {
        "model": exchange.body.get("model"),
        "messages": [*(messages if isinstance(messages, list) else ()), turn],
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": 0,
        "add_generation_prompt": False,
        "continue_final_message": True,
    }


def _echo(exchange: Exchange) -> dict[str, Any]:
    return {
        "model": exchange.body.get("model"),
        "prompt": f"{exchange.body.get('prompt', '')}{exchange.answer}",
        "max_tokens": 1,
        "temperature": 0,
        "echo": True,
        "logprobs": 1,
    }


def _read_prompt(body: Any) -> list[list[Any]] | None:
    """VLLM's ``prompt_logprobs``: per token one mapping, ``None`` for the first."""
    found = body.get("prompt_logprobs") if isinstance(body, dict) else None
    if not isinstance(found, list):
        return None
    rows = []
    for each in found:
        inside = next(iter(each.values()), None) if isinstance(each, dict) else None
        if isinstance(inside, dict) and isinstance(inside.get("decoded_token"), str):
            rows.append([inside["decoded_token"], inside.get("logprob"), []])
        else:
            rows.append(["", None, []])
    return rows


def _read_echo(body: Any) -> list[list[Any]] | None:
    try:
        found = body["choices"][0]["logprobs"]
        pairs = list(zip(found["tokens"], found["token_logprobs"], strict=True))
    except (LookupError, TypeError, ValueError):
        return None
    return [[str(token), value, []] for token, value in pairs]
