"""What a scorer is given and what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from routeproof.workloads.case import Case

ScoreClass = Literal[
    "correct",
    "wrong",
    "graded",
    "unparseable",
    "refused",
    "truncated",
    "timed_out",
    "empty",
    "failed",
    "unscored",
]
"""Class before value. ``failed``: the request itself did not bring an answer (its
outcome says how). ``unscored``: the scorer could not say (judge silent, bad
reference); never a 0. A truncated answer that can be scored keeps its own class
and a value. ``timed_out``: the program in the answer ran out of its time."""


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """The answer as a scorer sees it: text without reasoning, calls, how it ended."""

    text: str
    outcome: str = "completed"
    finish_reason: str | None = "stop"
    reasoning: str | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    choices: tuple[str, ...] = ()
    output_tokens: int | None = None
    logprobs: str | None = None


class Score(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scorer says of one answer.

    Attributes:
        value: In [0, 1], or ``None`` when it could not be scored.
        extracted: What was taken from the answer and compared.
        trace: One line: how it was extracted, why it counts as it does.
    """

    class_: ScoreClass = msgspec.field(name="class")
    value: float | None
    extracted: str | None = None
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A row of the table of scorers.

    Attributes:
        version: Raised whenever the same answer could get another score.
        binary: True when values are 0 or 1 only; decides the statistics used.
        of: The pure function.
        higher_is_better: False for rates of something unwanted.
        is_secondary: True for a reading that locates a change and must not be the
            only quality metric (perplexity).
        applies: Whether a case is this scorer's matter at all (over-refusal asks only
            safe requests); ``None`` means every case.
    """

    name: str
    version: int
    binary: bool
    of: Callable[[Case, ScoredAnswer], Score]
    what: str
    higher_is_better: bool = True
    applies: Callable[[Case], bool] | None = None
    is_secondary: bool = False
