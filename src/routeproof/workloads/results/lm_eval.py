"""Sample logs of lm-evaluation-harness: a score per document."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import FormatError
from routeproof.workloads.importers.lines import Line, read_lines, read_text
from routeproof.workloads.results.loose import number, text
from routeproof.workloads.results.result import Result, Sample, digest

NEEDS = ("doc_id", "target", "resps", "filtered_resps")
FROM_RESULTS = (
    "lm_eval_version", "model_source", "fewshot_as_multiturn", "chat_template_sha",
    "system_instruction_sha",
)  # fmt: skip


def lm_eval(path: Path) -> tuple[Result, ...]:
    """One result per task: a ``samples_*.jsonl``, or a folder that holds some.

    ``results*.json`` beside it gives version, model and settings. A metric that is no
    number for a document (some are pairs for a corpus score) has no value there.
    """
    files = sorted(path.glob("samples_*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise FormatError(
            "no `samples_*.jsonl` in it",
            path=path,
            hint="run lm_eval with --log_samples",
        )
    return tuple(_result(one) for one in files)


def _result(path: Path) -> Result:
    samples: list[Sample] = []
    hashes = []
    for line in read_lines(path, "a sample log of lm-evaluation-harness", NEEDS):
        samples.extend(_samples(line))
        hashes.append(str(line.row.get("prompt_hash", "")))
    settings = _settings(path)
    conditions = {k: str(settings[k]) for k in FROM_RESULTS if settings.get(k)}
    if any(hashes):
        conditions["prompts"] = digest("\n".join(hashes))
    return Result(
        tool="lm-eval",
        tool_version=text(settings.get("lm_eval_version")),
        kind="quality",
        label=f"{path.parent.name}/{path.stem}",
        model=text(settings.get("model_name")),
        conditions=conditions,
        samples=tuple(samples),
    )


def _samples(line: Line) -> list[Sample]:
    names = line.texts("metrics")
    answer = _answer(line)
    return [
        _sample(line, name, number(line.row.get(name)), digest(answer))
        for name in names
    ]


def _sample(line: Line, name: str, value: float | None, text_digest: str) -> Sample:
    filter_ = str(line.row.get("filter", "none"))
    return Sample(
        case_id=line.name("doc_id"),
        trial=0,
        scorer=name if filter_ == "none" else f"{name},{filter_}",
        value=value,
        text_digest=text_digest,
        note=None if value is not None else "the log has no number for this document",
    )


def _answer(line: Line) -> str:
    first = line.row.get("filtered_resps")
    while isinstance(first, list) and first:
        first = first[0]
    return first if isinstance(first, str) else str(first)


def _settings(path: Path) -> Mapping[str, Any]:
    for beside in sorted(path.parent.glob("results*.json")):
        try:
            found = msgspec.json.decode(read_text(beside))
        except msgspec.DecodeError as error:
            raise FormatError(f"not JSON: {error}", path=beside) from error
        if isinstance(found, dict):
            return found
    return {}
