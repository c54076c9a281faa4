"""Records to answers: the columns of a record as a scorer sees them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from routeproof.records.columns import Records
from routeproof.scorers.score import ScoredAnswer
from routeproof.workloads.case import Case

COLUMNS = (
    "request_id", "arm", "phase", "level", "case_id", "trial", "outcome",
    "finish_reason", "text", "reasoning", "tool_calls", "choices", "output_tokens",
)  # fmt: skip
"""Columns a record part must be read with to be scored."""

NUMBERS = frozenset({"trial", "output_tokens"})


def columns_for(cases: Iterable[Case]) -> tuple[str, ...]:
    """Columns to read the parts of a run with, so that these cases can be scored.

    Log-probabilities are by far the largest and are read only where they are used.
    """
    named = {name for case in cases for name in case.scorers}
    return (*COLUMNS, "logprobs") if "reference_likelihood" in named else COLUMNS


@dataclass(frozen=True, slots=True)
class RowKey:
    """Which request an answer belongs to."""

    request_id: str
    arm: str
    phase: str
    level: str
    case_id: str
    trial: int


def answers_of(records: Records) -> Iterator[tuple[RowKey, ScoredAnswer]]:
    """Key and answer of every record, in order."""
    names = [name for name in COLUMNS if name not in NUMBERS]
    texts = {name: records.text(name) for name in (*names, "logprobs")}
    trial = records.number("trial")
    tokens = records.number("output_tokens")
    for i in range(records.n):
        key = RowKey(
            request_id=_text(texts["request_id"][i]),
            arm=_text(texts["arm"][i]),
            phase=_text(texts["phase"][i]),
            level=_text(texts["level"][i]),
            case_id=_text(texts["case_id"][i]),
            trial=int(trial.values[i]),
        )
        yield (
            key,
            ScoredAnswer(
                text=_text(texts["text"][i]),
                outcome=_text(texts["outcome"][i]),
                finish_reason=texts["finish_reason"][i],
                reasoning=texts["reasoning"][i],
                tool_calls=read_tool_calls(texts["tool_calls"][i]),
                choices=_read_choices(texts["choices"][i]),
                output_tokens=int(tokens.values[i]) if tokens.known[i] else None,
                logprobs=texts["logprobs"][i],
            ),
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_tool_calls(stored: str | None) -> tuple[dict[str, Any], ...]:
    """Stored tool calls; what is not a list of objects becomes a call without name.

    The latter is scored ``unparseable``: a call was made, and nobody can say which.
    """
    if not stored:
        return ()
    try:
        calls = msgspec.json.decode(stored)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ({},)
    if not isinstance(calls, list):
        return ({},)
    return tuple(call if isinstance(call, dict) else {} for call in calls)


def _read_choices(stored: str | None) -> tuple[str, ...]:
    if not stored:
        return ()
    try:
        choices = msgspec.json.decode(stored)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ()
    listed = choices if isinstance(choices, list) else []
    return tuple(_text(choice) for choice in listed)
