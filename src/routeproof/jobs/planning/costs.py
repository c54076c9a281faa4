"""What requests cost: tokens and minutes, measured by an earlier run or assumed."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path

import msgspec
import numpy as np

from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Block, Plan, Stage
from routeproof.workloads.case import Case

ASSUMED_ANSWER_TOKENS = 256
"""Output tokens of a case that sets no ``max_tokens``."""
ASSUMED_TOKENS_PER_S = 50.0
"""Output tokens per second of one stream, where no run tells."""
CHARACTERS_PER_TOKEN = 4.0
"""Rough average of English text; only for the estimate of prompt tokens."""
_COLUMNS = ("arm", "prompt_tokens", "output_tokens", "intended_s", "end_s")


class RequestCost(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A typical request.

    Attributes:
        source: ``assumed``, or the run folder it was measured in.
    """

    prompt_tokens: float
    output_tokens: float
    duration_s: float
    source: str


class StageCost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stage of the present plan.

    Attributes:
        requests: All arms and the warm-up; ``None`` where the clock ends the stage.
    """

    phase: str
    level: str
    requests: int | None
    minutes: float


def assumed_cost(
    cases: Sequence[Case],
    *,
    answer_tokens: float | None = None,
    tokens_per_s: float | None = None,
) -> RequestCost:
    """A typical request guessed from the cases; an answer is as long as it may be.

    Args:
        cases: The workload's cases.
        answer_tokens: Output tokens of an answer, when the user knows better.
        tokens_per_s: Output tokens per second of one stream.
    """
    limits = [
        float(case.parameters.get("max_tokens", ASSUMED_ANSWER_TOKENS))
        for case in cases
    ]
    prompts = [_characters(case) / CHARACTERS_PER_TOKEN for case in cases]
    tokens = answer_tokens or (float(np.mean(limits)) if limits else 0.0)
    return RequestCost(
        prompt_tokens=float(np.mean(prompts)) if prompts else 0.0,
        output_tokens=tokens,
        duration_s=tokens / (tokens_per_s or ASSUMED_TOKENS_PER_S),
        source="assumed",
    )


def measured_cost(run: Path) -> RequestCost | None:
    """A typical request of the baseline in an earlier run.

    Returns:
        ``None`` when the run lacks what is needed.

    Raises:
        StoredRunError: The run cannot be read.
    """
    prompt: list[float] = []
    output: list[float] = []
    lasted: list[float] = []
    for part in RunFolder.open(run).parts(only=_COLUMNS):
        of_baseline = part.where(part.is_in("arm", "baseline"))
        prompt += of_baseline.number("prompt_tokens").where_known().tolist()
        output += of_baseline.number("output_tokens").where_known().tolist()
        start, end = of_baseline.number("intended_s"), of_baseline.number("end_s")
        known = start.known & end.known
        lasted += (end.values[known] - start.values[known]).tolist()
    if not (prompt and output and lasted):
        return None
    return RequestCost(
        prompt_tokens=float(np.mean(prompt)),
        output_tokens=float(np.mean(output)),
        duration_s=float(np.mean(lasted)),
        source=str(run),
    )


def stage_costs(plan: Plan, cost: RequestCost) -> tuple[StageCost, ...]:
    """Requests and minutes of every stage of a plan; blocks run one after the other."""
    return tuple(
        StageCost(
            phase=stage.phase,
            level=stage.level,
            requests=stage.planned,
            minutes=_minutes(stage, cost),
        )
        for stage in plan.stages
    )


def _minutes(stage: Stage, cost: RequestCost) -> float:
    return sum(_block_s(block, cost) for block in stage.blocks) / 60


def _block_s(block: Block, cost: RequestCost) -> float:
    if block.duration_s is not None:
        return block.duration_s
    if block.offsets_s is not None and block.offsets_s.size:
        return float(block.offsets_s[-1]) + cost.duration_s
    return ceil((block.count or 0) / (block.concurrency or 1)) * cost.duration_s


def _characters(case: Case) -> int:
    if case.prompt is not None:
        return len(case.prompt)
    contents = (message.get("content") for message in case.messages or ())
    return sum(len(content) for content in contents if isinstance(content, str))
