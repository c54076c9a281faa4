"""Log probabilities of tokens: the toy model's own, or made up for a script.

Made-up ones are repeatable, with the near ties of the script in place.
"""

import math
from collections.abc import Sequence
from typing import Any

from routeproof.simulator import draws, tokens
from routeproof.simulator.ask import Ask
from routeproof.simulator.defects import SamplingDefects
from routeproof.simulator.script import Tie

TIE_MARGIN = 0.02
"""Distance, in nats, of the two tokens of a near tie."""

_OTHERS = (
    " the",
    " a",
    ".",
    ",",
    " and",
    " of",
    " to",
    "\n",
    " in",
    " is",
    " that",
    " for",
)


Ranked = Sequence[tuple[str, float]]
"""Tokens and their natural log probabilities, likeliest first."""


def entry(
    ask: Ask, token: str, ranked: Ranked, wrong: SamplingDefects
) -> dict[str, Any]:
    """The logprobs object of one token of a chat answer.

    Args:
        ask: Says how many alternatives are wanted.
        token: The token.
        ranked: Distribution it was drawn from, the token itself among it.
        wrong: A defective route shifts or zeroes the values.
    """
    own = next(value for name, value in ranked if name == token)
    ranked = ranked[: ask.top_logprobs]
    shift = wrong.logprob_shift
    return _item(token, _told(own, shift, wrong)) | {
        "top_logprobs": [_item(t, _told(v, shift, wrong)) for t, v in ranked]
    }


def made_up(key: str, at: int, token: str, tie: Tie | None) -> Ranked:
    """A distribution for the token ``at`` of a scripted answer, the token first.

    Args:
        key: Name of the prompt.
        at: Index of the token in the text.
        token: The token.
        tie: Where the answer's near tie is.
    """
    if tie is not None and tie.at == at:
        own, second = math.log(0.45), math.log(0.45) - TIE_MARGIN
        first_other = [(tie.other, second)]
        rest = 0.1
    else:
        likely = 0.6 + 0.39 * draws.unit("likely", key, at, token)
        own, first_other, rest = math.log(likely), [], 1.0 - likely
    others = [t for t in _OTHERS if t != token and all(t != f[0] for f in first_other)]
    start = int(draws.unit("others", key, at) * len(others))
    for rank in range(5):
        rest /= 2
        first_other.append((others[(start + rank) % len(others)], math.log(rest)))
    return [(token, own), *first_other]


def _told(value: float, shift: float, wrong: SamplingDefects) -> float:
    return 0.0 if wrong.zero_logprobs else min(value + shift, 0.0)


def _item(token: str, value: float) -> dict[str, Any]:
    return {"token": token, "logprob": value, "bytes": list(token.encode())}


def completion(items: list[dict[str, Any]]) -> dict[str, Any]:
    """The same in the form of the completions endpoint."""
    return {
        "tokens": [i["token"] for i in items],
        "token_logprobs": [i["logprob"] for i in items],
        "top_logprobs": [
            {t["token"]: t["logprob"] for t in i["top_logprobs"]} for i in items
        ],
        "text_offset": _offsets(items),
    }


def _offsets(items: list[dict[str, Any]]) -> list[int]:
    offsets, at = [], 0
    for item in items:
        offsets.append(at)
        at += len(item["token"])
    return offsets


def ids(texts: list[str]) -> list[int]:
    """Token ids of shown tokens."""
    return [tokens.token_id(t) for t in texts]
