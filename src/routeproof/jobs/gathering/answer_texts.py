"""The few answers that a report shows, fetched from a run by their keys."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from routeproof.metrics.per_request import request_keys
from routeproof.records.store import RunFolder

_COLUMNS = ("request_id", "text", "reasoning", "tool_calls", "logprobs", "outcome")

SHOWN_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class AnswerText:
    """One answer as it is compared and shown.

    ``whole`` is the text with reasoning and tool calls, as digests are taken of it;
    ``shown`` is what a person reads, cut to ``SHOWN_CHARACTERS``.
    """

    whole: str
    shown: str
    outcome: str
    logprobs: str | None


def answer_texts(folder: RunFolder, keys: Collection[float]) -> dict[float, AnswerText]:
    """Answers by request key; keys that are not in the run are left out."""
    wanted = np.array(sorted(set(keys)))
    found: dict[float, AnswerText] = {}
    if not wanted.size:
        return found
    for part in folder.parts(only=_COLUMNS):
        part_keys = request_keys(part.text("request_id")).values
        for row in np.flatnonzero(np.isin(part_keys, wanted)).tolist():
            texts = {name: part.text(name)[row] or "" for name in _COLUMNS}
            calls = texts["tool_calls"]
            visible = texts["text"] or calls
            found[float(part_keys[row])] = AnswerText(
                whole=texts["text"] + texts["reasoning"] + calls,
                shown=visible[:SHOWN_CHARACTERS],
                outcome=texts["outcome"],
                logprobs=texts["logprobs"] or None,
            )
    return found
