"""How each engine wants to be asked for the same thing, as one table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Request fields of one engine's chat endpoint; ``None`` where it has no way.

    Attributes:
        token_ids: Brings the ids of the output tokens back.
        logprobs: Log-probabilities with the best ``n`` alternatives.
        prompt_logprobs: Log-probabilities of the prompt's own tokens, to score a given
            text; where the fields go.
        regex, grammar: Constrain the answer.
        top_logprobs_max: Most alternatives a default server gives.
        logprobs_under_speculation: Whether they can be had, and believed, on a route
            that speculates; if not, take them from the baseline.
    """

    token_ids: Fields | None
    logprobs: Callable[[int], Fields]
    prompt_logprobs: Fields | None
    regex: Callable[[str], Fields] | None
    grammar: Callable[[str], Fields] | None
    top_logprobs_max: int
    logprobs_under_speculation: bool


def json_schema(name: str, schema: Mapping[str, Any]) -> Fields:
    """An answer after a JSON schema; every engine takes the same fields."""
    wanted = {"name": name, "strict": True, "schema": dict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


def _openai_logprobs(n: int) -> Fields:
    return {"logprobs": True, "top_logprobs": n}


DIALECTS: dict[str, Dialect] = {
    "vllm": Dialect(
        token_ids={"return_token_ids": True},
        logprobs=_openai_logprobs,
        prompt_logprobs={"prompt_logprobs": 1},
        # `guided_regex` and its kin went away in 0.12.
        regex=lambda pattern: {"structured_outputs": {"regex": pattern}},
        grammar=lambda text: {"structured_outputs": {"grammar": text}},
        top_logprobs_max=20,
        logprobs_under_speculation=True,
    ),
    "sglang": Dialect(
        token_ids={"return_token_ids": True},
        logprobs=_openai_logprobs,
        prompt_logprobs=None,
        regex=lambda pattern: {"regex": pattern},
        grammar=lambda text: {"ebnf": text},
        top_logprobs_max=20,
        logprobs_under_speculation=True,
    ),
    "llama.cpp": Dialect(
        # `return_tokens` works on /completion only (build 10434).
        token_ids=None,
        logprobs=_openai_logprobs,
        prompt_logprobs=None,
        regex=None,
        grammar=lambda text: {"grammar": text},
        top_logprobs_max=20,
        logprobs_under_speculation=False,
    ),
    "tensorrt-llm": Dialect(
        token_ids=None,
        logprobs=_openai_logprobs,
        prompt_logprobs=None,
        regex=lambda pattern: {"response_format": {"type": "regex", "regex": pattern}},
        grammar=lambda text: {"response_format": {"type": "ebnf", "ebnf": text}},
        top_logprobs_max=20,
        logprobs_under_speculation=False,
    ),
    "openai": Dialect(
        token_ids=None,
        logprobs=_openai_logprobs,
        prompt_logprobs=None,
        regex=None,
        grammar=None,
        top_logprobs_max=20,
        logprobs_under_speculation=True,
    ),
}


def dialect(engine: str) -> Dialect:
    """The dialect of an engine; that of the protocol for one nobody knows."""
    return DIALECTS.get(engine, DIALECTS["openai"])
