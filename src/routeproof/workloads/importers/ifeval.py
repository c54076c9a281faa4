"""IFEval and its multilingual extension: instructions a program can check."""

from pathlib import Path

from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, Line, read_lines, user


def ifeval(path: Path) -> Imported:
    """Cases of IFEval (``prompt``, ``instruction_id_list``, ``kwargs``)."""
    needs = ("key", "prompt", "instruction_id_list", "kwargs")
    return Imported(tuple(_case(line) for line in read_lines(path, "IFEval", needs)))


def _case(line: Line) -> Case:
    names = line.texts("instruction_id_list")
    arguments = line.row.get("kwargs")
    if not isinstance(arguments, list) or len(arguments) != len(names):
        raise line.error("`kwargs` and `instruction_id_list` are not of one length")
    head = names[0].split(":")[0]
    language = head if len(head) == 2 else "en"
    return Case(
        id=f"ifeval-{language}-{line.name('key')}",
        class_="instruction",
        tags={"language": language},
        messages=(user(line.text("prompt")),),
        parameters={"max_tokens": 1024},
        reference={"instruction_id_list": list(names), "kwargs": arguments},
        scorers=("instruction", "instruction_share"),
    )
