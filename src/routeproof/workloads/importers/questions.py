"""Question sets: NQ-open, XQuAD and LongFact."""

from pathlib import Path

from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, Line, read_lines, user


def nq_open(path: Path) -> Imported:
    """Cases of NQ-open (``question``, ``answer`` with its aliases)."""
    cases = []
    for line in read_lines(path, "NQ-open", ("question", "answer")):
        named = line.row.get("id")
        cases.append(
            Case(
                id=str(named) if named else f"nq-{line.number:05d}",
                class_="factual_qa",
                messages=(user(line.text("question") + "?\nAnswer in a few words."),),
                parameters={"max_tokens": 64},
                reference=list(line.texts("answer")),
                scorers=("contains",),
            )
        )
    return Imported(tuple(cases))


def xquad(path: Path) -> Imported:
    """Cases of XQuAD as rows (``lang``, ``context``, ``question``, ``answers``).

    The same question in several languages is one cluster: its answers are not
    independent.
    """
    needs = ("id", "lang", "context", "question", "answers")
    return Imported(tuple(_xquad(line) for line in read_lines(path, "XQuAD", needs)))


def _xquad(line: Line) -> Case:
    language, name = line.text("lang"), line.name("id")
    ask = (
        f"{line.text('context')}\n\n{line.text('question')}\n"
        "Answer with a short phrase from the text above, in its language."
    )
    return Case(
        id=f"{name}-{language}",
        class_="reading",
        tags={"language": language},
        messages=(user(ask),),
        parameters={"max_tokens": 64},
        reference=list(line.texts("answers")),
        scorers=("contains",),
        cluster=name,
    )


def longfact(path: Path) -> Imported:
    """Cases of LongFact: prompts for long answers, to be judged or guarded."""
    cases = []
    for line in read_lines(path, "LongFact", ("prompt",)):
        named = line.row.get("id")
        tags = {k: str(line.row[k]) for k in ("kind", "topic") if line.row.get(k)}
        cases.append(
            Case(
                id=str(named) if named else f"longfact-{line.number:04d}",
                class_="long_form",
                tags=tags,
                messages=(user(line.text("prompt")),),
                parameters={"max_tokens": 1024},
                scorers=("degeneration",),
            )
        )
    return Imported(tuple(cases))
