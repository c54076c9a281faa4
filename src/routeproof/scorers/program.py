"""The program in an answer, and the task it is meant for."""

import ast
import re
from dataclasses import dataclass
from typing import Any

from routeproof.scorers.json_text import fences

STOPS = re.compile(
    r"\n(?=(?:class |def |if __name__|print\(|assert |#|@|```|<\||Question:"
    r"|[A-Z][a-z]+ ))"
)
"""Where a completion that runs on has left the function it was to write."""

_PYTHON = ("python", "py", "python3")


class TaskProblem(ValueError):
    """A reference that is no task with tests."""


@dataclass(frozen=True, slots=True)
class Task:
    """A programming task.

    Attributes:
        context: Source a program stands on and the tests may use: for HumanEval the
            prompt with its imports and helpers.
        solution: A program that is right; ``None`` when there is none.
    """

    tests: str
    entry_points: tuple[str, ...]
    context: str = ""
    solution: str | None = None


def read_task(reference: Any) -> Task:
    """The task of a reference.

    Keys: ``tests`` (source or list of sources), ``entry_point`` or ``entry_points``,
    ``context``, ``solution``, ``imports``. The native keys of HumanEval (``prompt``,
    ``canonical_solution``, ``test``) and MBPP (``test_list``, ``test_imports``,
    ``code``) are read too.

    Raises:
        TaskProblem: A part is missing or does not parse.
    """
    if not isinstance(reference, dict):
        raise TaskProblem("reference is no object with tests")
    tests = _joined(_first(reference, "tests", "test", "test_list"))
    imports = _joined(_first(reference, "imports", "test_imports") or [])
    context = _joined(_first(reference, "context", "prompt_source") or "")
    solution = _first(reference, "solution", "code")
    if "canonical_solution" in reference:
        context = str(reference.get("prompt", ""))
        solution = context + str(reference["canonical_solution"])
    if not tests.strip():
        raise TaskProblem("no tests")
    tests = "\n".join(part for part in (_imports(solution), imports, tests) if part)
    for name, source in (("tests", tests), ("context", context)):
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise TaskProblem(f"{name} do not parse: {error}") from error
    named = _first(reference, "entry_points", "entry_point")
    points = (named,) if isinstance(named, str) else tuple(named or ())
    if not points and isinstance(solution, str):
        points = _called_functions(solution, tests)
    if not points or not all(isinstance(one, str) for one in points):
        raise TaskProblem("no entry point")
    return Task(tests, points, context, solution if isinstance(solution, str) else None)


def _first(reference: dict[str, Any], *names: str) -> Any:
    return next((reference[n] for n in names if reference.get(n) is not None), None)


def _joined(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "\n".join(str(one) for one in value)
    return str(value or "")


def _imports(solution: Any) -> str:
    """Imports of a solution: some data sets' tests count on them."""
    try:
        body = ast.parse(solution).body if isinstance(solution, str) else []
    except (SyntaxError, ValueError):
        return ""
    found = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in found)


def _called_functions(solution: str, tests: str) -> tuple[str, ...]:
    """Functions a solution defines and its tests mention, in order of definition."""
    try:
        body = ast.parse(solution).body
    except (SyntaxError, ValueError):
        return ()
    said = {
        node.id for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Name)
    }
    return tuple(
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name in said
    )


def extract_program(text: str, task: Task) -> tuple[str | None, str]:
    """The program an answer offers, and the rule that found it.

    A fence that defines an entry point wins, the last of them; then all Python fences
    together; then the text itself; then the text as the continuation of the context,
    cut where it runs on. The context stands in front, so that its imports and helpers
    are there.

    Returns:
        ``None`` and the reason when nothing in the answer compiles to a program with
        the entry points.
    """
    blocks = fences(text)
    python = [code for language, code in blocks if language in (*_PYTHON, "")]
    candidates = [(code, "fence") for code in reversed(python)]
    if len(python) > 1:
        candidates.append(("\n\n".join(python), "all fences"))
    if not blocks:
        candidates.append((text, "whole answer"))
    for code, rule in candidates:
        program = f"{task.context}\n\n{code}\n" if task.context else code
        if _defines(code, task.entry_points) and _compiles(program):
            return program, rule
    for code, rule in [*[(c, "continued fence") for c in python], (text, "continued")]:
        continued = _continuation(code, task)
        if continued is not None:
            return continued, rule
    return None, f"no program that defines {task.entry_points[0]}"


def _defines(code: str, names: tuple[str, ...]) -> bool:
    name = re.escape(names[0])
    return bool(
        re.search(rf"^(?:async\s+)?def\s+{name}\b|^{name}\s*=", code, re.MULTILINE)
    )


def _compiles(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _continuation(code: str, task: Task) -> str | None:
    """The context continued by ``code`` up to where it still compiles."""
    if not task.context.strip() or not code.strip():
        return None
    body = code if code[:1].isspace() else "    " + code
    ends = [match.start() for match in STOPS.finditer(body)][:20]
    for end in [len(body), *ends]:
        program = task.context + body[:end].rstrip() + "\n"
        if _compiles(program) and program.strip() != task.context.strip():
            return program
    return None
