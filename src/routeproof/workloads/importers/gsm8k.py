"""GSM8K: grade-school word problems with a number as the answer."""

from pathlib import Path

from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, read_lines, user

ASK = "\n\nSolve it step by step and end with a line `#### <number>`."


def gsm8k(path: Path) -> Imported:
    """Cases of a GSM8K file (``question``, ``answer`` with ``#### number``)."""
    cases = []
    for line in read_lines(path, "GSM8K", ("question", "answer")):
        answer = line.text("answer")
        if "####" not in answer:
            raise line.error("`answer` has no `####` before the final number")
        named = line.row.get("id")
        cases.append(
            Case(
                id=str(named) if named else f"gsm8k-{line.number:04d}",
                class_="arithmetic",
                messages=(user(line.text("question") + ASK),),
                parameters={"max_tokens": 512},
                reference=answer.rsplit("####", 1)[1].strip(),
                scorers=("numeric",),
            )
        )
    return Imported(tuple(cases))
