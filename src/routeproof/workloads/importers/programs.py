"""HumanEval and MBPP: programs that are run against tests."""

from pathlib import Path
from typing import Any

from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, Line, read_lines, user

SHOWN_TESTS = 3
"""MBPP's own protocol shows three assertions with the task."""


def humaneval(path: Path) -> Imported:
    """Cases of HumanEval: a function to complete from its signature and docstring."""
    needs = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
    return Imported(
        tuple(_humaneval(line) for line in read_lines(path, "HumanEval", needs))
    )


def _humaneval(line: Line) -> Case:
    prompt = line.text("prompt")
    ask = (
        "Complete this Python function. Answer with one code block that holds the "
        f"whole function, imports included.\n\n```python\n{prompt}```"
    )
    keys = ("prompt", "canonical_solution", "test", "entry_point")
    return _code(line, line.text("task_id"), ask, {key: line.text(key) for key in keys})


def mbpp(path: Path) -> Imported:
    """Cases of MBPP (JSONL, or the JSON array of the sanitized set)."""
    needs = ("task_id", "code", "test_list")
    return Imported(tuple(_mbpp(line) for line in read_lines(path, "MBPP", needs)))


def _mbpp(line: Line) -> Case:
    tests = line.texts("test_list")
    task = line.text("prompt" if "prompt" in line.row else "text")
    shown = "\n".join(tests[:SHOWN_TESTS])
    ask = (
        f"{task}\n\nWrite it in Python, in one code block. These tests must pass:\n\n"
        f"```python\n{shown}\n```"
    )
    imports = line.texts("test_imports") if line.row.get("test_imports") else ()
    reference = {
        "test_list": list(tests),
        "test_imports": list(imports),
        "code": line.text("code"),
    }
    return _code(line, f"MBPP/{line.name('task_id')}", ask, reference)


def _code(line: Line, name: str, ask: str, reference: dict[str, Any]) -> Case:
    return Case(
        id=name,
        class_="code",
        messages=(user(ask),),
        parameters={"max_tokens": 512},
        reference=reference,
        scorers=("code",),
    )
