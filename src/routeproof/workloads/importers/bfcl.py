"""BFCL: function calls with every accepted value of every argument."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeproof.workloads.case import Case
from routeproof.workloads.cases import messages_problem
from routeproof.workloads.importers.lines import Imported, Line, read_lines

TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "list": "array",
    "bool": "boolean",
    "int": "integer",
    "str": "string",
}
"""Python's names in the files to JSON Schema's."""

SCHEMA_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")


def bfcl(path: Path) -> Imported:
    """Cases of one BFCL file, single-turn.

    The accepted calls stand in the rows (``ground_truth``), or in the file of the same
    name in ``possible_answer/`` beside it, which is how BFCL is published. Dots in
    function names become underscores, which is what the OpenAI API allows; in the
    expected calls too. Irrelevance cases expect no call, relevance cases any.
    """
    answers = _answers(path.parent / "possible_answer" / path.name)
    needs = ("id", "question", "function")
    lines = read_lines(path, "BFCL", needs)
    return Imported(tuple(_case(line, answers) for line in lines))


def _answers(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    lines = read_lines(path, "BFCL's accepted calls", ("id", "ground_truth"))
    return {line.text("id"): line.row.get("ground_truth") for line in lines}


def _case(line: Line, answers: Mapping[str, Any]) -> Case:
    name, messages = line.text("id"), _messages(line)
    category = str(line.row.get("category") or name.rsplit("_", 1)[0])
    truth = line.row.get("ground_truth")
    truth = answers.get(name) if truth is None else truth
    options: dict[str, Any] = {}
    reference = _renamed(truth, line) if truth is not None else None
    if truth is None and "irrelevance" in category:
        reference = []
    elif truth is None and "relevance" in category:
        options = {"expect": "some"}
    elif truth is None:
        raise line.error(
            f"no accepted calls for `{name}`",
            hint="put BFCL's `possible_answer` folder beside the file",
        )
    return Case(
        id=name,
        class_="tool_call",
        tags={"category": category},
        messages=messages,
        parameters={
            "max_tokens": 512,
            "tools": [_tool(one) for one in _functions(line)],
            "tool_choice": "auto",
        },
        reference=reference,
        scorers=("tool_call",),
        options=options,
    )


def _messages(line: Line) -> tuple[dict[str, Any], ...]:
    turns = line.row.get("question")
    if not isinstance(turns, list) or not turns or not _are_objects(turns[0]):
        raise line.error("`question` is no list of lists of messages")
    if len(turns) > 1:
        raise line.error(
            "this is a multi-turn case: its calls change a simulated world",
            hint="import the single-turn categories",
        )
    messages = tuple(turns[0])
    if problem := messages_problem(messages):
        raise line.error(problem)
    return messages


def _functions(line: Line) -> list[dict[str, Any]]:
    value = line.row.get("function")
    listed: list[Any] = value if isinstance(value, list) else [value]
    if not _are_objects(listed) or not all(_is_named(one) for one in listed):
        raise line.error("`function` holds something without a name")
    return listed


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _is_named(function: Any) -> bool:
    return isinstance(function.get("name"), str)


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": _api_name(function["name"]),
            "description": str(function.get("description", "")),
            "parameters": _schema(function.get("parameters", {"type": "dict"})),
        },
    }


def _api_name(name: str) -> str:
    return name.replace(".", "_")


def _schema(value: Any) -> Any:
    """The parameter description with JSON Schema's type names; ``any`` has no type."""
    if isinstance(value, list):
        return [_schema(one) for one in value]
    if not isinstance(value, dict):
        return value
    done = {}
    for key, one in value.items():
        if key == "type" and isinstance(one, str):
            type_ = TYPES.get(one.lower(), one.lower())
            if type_ in SCHEMA_TYPES:
                done[key] = type_
        else:
            done[key] = _schema(one)
    return done


def _renamed(truth: Any, line: Line) -> Any:
    if not isinstance(truth, list) or not all(isinstance(one, dict) for one in truth):
        raise line.error("`ground_truth` is no list of calls")
    return [{_api_name(k): v for k, v in one.items()} for one in truth]
