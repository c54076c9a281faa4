"""One pair of answers of a run, as it was recorded."""

from pathlib import Path

import msgspec
import numpy as np

from routeproof.errors import ConfigError
from routeproof.records.columns import Records
from routeproof.records.store import RunFolder
from routeproof.reports.shown import Shown, ShownCase
from routeproof.workloads.case import Case

_COLUMNS = (
    "request_id", "arm", "phase", "level", "case_id", "trial", "outcome",
    "finish_reason", "error", "text", "reasoning", "tool_calls", "prompt_tokens",
    "output_tokens", "intended_s", "first_visible_s", "end_s", "drafted", "accepted",
)  # fmt: skip


def show(run: Path, case_id: str, *, trial: int | None = None) -> ShownCase:
    """Everything a run recorded of one case.

    Args:
        run: The run folder.
        case_id: The case.
        trial: One trial only; all when ``None``.

    Raises:
        ConfigError: The run has no such case.
        StoredRunError: The run cannot be read.
    """
    folder = RunFolder.open(run)
    requests = [
        shown
        for part in folder.parts(only=_COLUMNS)
        for shown in _of_case(part, case_id)
        if trial is None or shown.trial == trial
    ]
    case = _case(folder, case_id)
    if not requests and case is None:
        raise ConfigError(
            f"{run} has no case {case_id!r}",
            hint="the ids are in cases.jsonl of the run folder",
        )
    requests.sort(key=lambda r: (r.phase, r.level, r.trial, r.arm))
    return ShownCase(case_id=case_id, case=case, requests=tuple(requests))


def _case(folder: RunFolder, case_id: str) -> Case | None:
    if not folder.cases_path.exists():
        return None
    decoder = msgspec.json.Decoder(Case)
    with folder.cases_path.open("rb") as lines:
        for line in lines:
            if case_id.encode() in line:
                case = decoder.decode(line)
                if case.id == case_id:
                    return case
    return None


def _of_case(part: Records, case_id: str) -> list[Shown]:
    chosen = part.where(part.is_in("case_id", case_id))
    return [_row(chosen, index) for index in range(chosen.n)]


def _row(records: Records, index: int) -> Shown:
    def text(name: str) -> str | None:
        value = records.text(name)[index]
        return None if value is None else str(value)

    def number(name: str) -> float | None:
        column = records.number(name)
        return float(column.values[index]) if column.known[index] else None

    def after(name: str) -> float | None:
        due, at = number("intended_s"), number(name)
        return None if due is None or at is None else float(np.round(at - due, 6))

    return Shown(
        request_id=text("request_id") or "",
        arm=text("arm") or "",
        phase=text("phase") or "",
        level=text("level") or "",
        trial=int(number("trial") or 0),
        outcome=text("outcome") or "",
        finish_reason=text("finish_reason"),
        error=text("error"),
        text=text("text"),
        reasoning=text("reasoning"),
        tool_calls=text("tool_calls"),
        prompt_tokens=number("prompt_tokens"),
        output_tokens=number("output_tokens"),
        first_visible_after_s=after("first_visible_s"),
        ended_after_s=after("end_s"),
        drafted=number("drafted"),
        accepted=number("accepted"),
    )
