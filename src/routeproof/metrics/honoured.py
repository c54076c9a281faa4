"""Were the request's own parameters honoured? One look at each answer."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from routeproof.metrics.timing import served
from routeproof.records.columns import Column, Records
from routeproof.workloads.case import Case

Parameters = Mapping[str, Any]


def _keeps_stop(asked: Parameters, answer: Mapping[str, Any]) -> bool | None:
    """No stop string stands in the text; ``None`` when none was asked for."""
    stop = asked.get("stop")
    if not stop:
        return None
    strings = [stop] if isinstance(stop, str) else list(stop)
    text = answer["text"] or ""
    return not any(s in text for s in strings if isinstance(s, str))


def _keeps_max_tokens(asked: Parameters, answer: Mapping[str, Any]) -> bool | None:
    """No more tokens than ``max_tokens``, by the server's own count."""
    most = asked.get("max_tokens", asked.get("max_completion_tokens"))
    tokens = answer["output_tokens"]
    if not isinstance(most, int) or tokens is None:
        return None
    return bool(tokens <= most * max(1, int(asked.get("n", 1))))


def _keeps_choices(asked: Parameters, answer: Mapping[str, Any]) -> bool | None:
    """As many choices as ``n`` asks for."""
    n = asked.get("n")
    if not isinstance(n, int) or n < 2:
        return None
    return len(_list(answer["choices"])) >= n


def _keeps_logprobs(asked: Parameters, answer: Mapping[str, Any]) -> bool | None:
    """Log probabilities came, and not every one of them is 0 (a certain token)."""
    if not asked.get("logprobs"):
        return None
    rows = _list(answer["logprobs"])
    values = [row[1] for row in rows if isinstance(row, list) and len(row) > 1]
    return any(isinstance(value, int | float) and value != 0 for value in values)


HONOURED: dict[str, Callable[[Parameters, Mapping[str, Any]], bool | None]] = {
    "stop": _keeps_stop,
    "max_tokens": _keeps_max_tokens,
    "choices": _keeps_choices,
    "logprobs": _keeps_logprobs,
}
"""Name of a parameter to whether an answer honours it; ``None`` = not asked for."""

COLUMNS = ("text", "choices", "logprobs", "output_tokens", "case_id", "outcome")
"""Columns a part must be read with."""


def honoured_columns(
    records: Records, asked: Mapping[str, Parameters]
) -> dict[str, Column]:
    """``honoured:<parameter>``: 1 where kept, 0 where not, unknown where not asked.

    Args:
        records: A part, with the columns of ``COLUMNS``.
        asked: Parameters by case, of those cases that ask for any of ``HONOURED``.
    """
    good, cases = served(records), records.text("case_id")
    rows = [r for r in np.flatnonzero(good).tolist() if cases[r] in asked]
    if not rows:
        return {}
    tokens = records.number("output_tokens")
    found: dict[str, Column] = {}
    texts = {name: records.text(name) for name in ("text", "choices", "logprobs")}
    for name, keeps in HONOURED.items():
        values, known = np.zeros(records.n), np.zeros(records.n, dtype=np.bool_)
        for row in rows:
            answer = {
                **{key: column[row] for key, column in texts.items()},
                "output_tokens": tokens.values[row] if tokens.known[row] else None,
            }
            kept = keeps(asked[cases[row]], answer)
            if kept is not None:
                values[row], known[row] = float(kept), True
        if known.any():
            found[f"honoured:{name}"] = Column(values, known)
    return found


def asked_parameters(cases: tuple[Case, ...]) -> dict[str, Parameters]:
    """Cases that ask for a parameter whose effect can be seen in the answer."""
    names = {"stop", "max_tokens", "max_completion_tokens", "n", "logprobs"}
    return {
        case.id: case.parameters for case in cases if names & case.parameters.keys()
    }


def _list(encoded: str | None) -> list[Any]:
    if not encoded:
        return []
    try:
        return list(msgspec.json.decode(encoded, type=list[Any]))
    except msgspec.DecodeError:
        return []
