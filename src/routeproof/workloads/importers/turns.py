"""MT-Bench and Spec-Bench: questions in one or two turns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import (
    Imported,
    Line,
    assistant,
    read_lines,
    user,
)

NO_HISTORY = "second turns without a reference answer to the first"
REFERENCES = "reference_answer_gpt4.jsonl"


def mt_bench(path: Path) -> Imported:
    """Cases of MT-Bench's questions.

    A second turn needs an answer to the first that is the same for both routes: it
    becomes a case of its own where ``reference_answer_gpt4.jsonl`` lies beside the
    questions and has one, and is left out where not.
    """
    answers = _answers(path.with_name(REFERENCES))
    return _turns(path, "MT-Bench", answers)


def spec_bench(path: Path) -> Imported:
    """Cases of Spec-Bench; its category is the class, for acceptance by class."""
    return _turns(path, "Spec-Bench", {})


def _answers(path: Path) -> dict[str, tuple[str, ...]]:
    if not path.exists():
        return {}
    found = {}
    for line in read_lines(
        path, "MT-Bench reference answers", ("question_id", "choices")
    ):
        choices = line.row.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        turns = first.get("turns") if isinstance(first, dict) else None
        if not isinstance(turns, list) or not all(isinstance(t, str) for t in turns):
            raise line.error("`choices` holds no turns")
        found[line.name("question_id")] = tuple(turns)
    return found


def _turns(path: Path, what: str, answers: Mapping[str, tuple[str, ...]]) -> Imported:
    cases: list[Case] = []
    dropped = 0
    for line in read_lines(path, what, ("question_id", "category", "turns")):
        turns = line.texts("turns")
        known = answers.get(line.name("question_id"), ())
        cases.append(_case(line, (user(turns[0]),), 1, known))
        if len(turns) > 1 and known:
            history = (user(turns[0]), assistant(known[0]), user(turns[1]))
            cases.append(_case(line, history, 2, known))
        dropped += len(turns) - 1 if not known else 0
    return Imported(tuple(cases), {NO_HISTORY: dropped} if dropped else {})


def _case(
    line: Line, messages: tuple[dict[str, Any], ...], turn: int, known: tuple[str, ...]
) -> Case:
    name = line.name("question_id")
    reference: Any = known[turn - 1] if len(known) >= turn else None
    scorers: tuple[str, ...] = ("degeneration",)
    if reference is None and "reference" in line.row:
        reference, scorers = _reference(line)
    return Case(
        id=f"{name}-{turn}",
        class_=line.text("category"),
        tags={"turn": str(turn)},
        messages=messages,
        parameters={"max_tokens": 1024},
        reference=reference,
        scorers=scorers,
        cluster=name,
    )


def _reference(line: Line) -> tuple[Any, tuple[str, ...]]:
    """Spec-Bench's reference, and the scorers it allows.

    Aliases of a RAG answer and the number of a word problem can be compared; a
    translation or a worked example cannot, and is kept for a judge.
    """
    given = line.row["reference"]
    first = given[0] if isinstance(given, list) and given else given
    category = line.row.get("category")
    if category == "rag" and isinstance(first, list):
        return first, ("contains", "degeneration")
    if category == "math_reasoning" and isinstance(first, str) and "####" in first:
        return first.rsplit("####", 1)[1].strip(), ("numeric", "degeneration")
    return first, ("degeneration",)
