"""OpenAI chat JSONL: fine-tuning rows, batch requests, and logs of requests."""

from pathlib import Path
from typing import Any

import msgspec

from routeproof.workloads.case import Case
from routeproof.workloads.cases import case_problem
from routeproof.workloads.importers.lines import Imported, Line, read_lines

PARAMETERS = (
    "tools", "tool_choice", "response_format", "stop", "max_tokens",
    "max_completion_tokens", "n", "logit_bias", "presence_penalty",
    "frequency_penalty", "parallel_tool_calls", "temperature", "top_p", "seed",
)  # fmt: skip
"""Request fields that are kept; the model and ``stream`` are the route's matter."""


def openai_chat(path: Path) -> Imported:
    """One case per row with ``messages``, or with a batch request in ``body``.

    When the last message is the model's, it becomes the reference: its tool calls
    for ``tool_call``, else its text, which is kept for a judge. Request fields in the
    row are kept. A ``response_format`` with a schema is scored by ``json_schema``.
    """
    return Imported(tuple(_case(line) for line in read_lines(path, "chat JSONL", ())))


def _case(line: Line) -> Case:
    body = line.mapping("body") if "body" in line.row else dict(line.row)
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise line.error("`messages` is no list of messages")
    said: dict[str, Any] = {}
    if messages and messages[-1].get("role") == "assistant":
        *messages, said = messages
    reference, scorers = _reference(said, body, line)
    named = line.row.get("custom_id") or line.row.get("id")
    case = Case(
        id=str(named or f"chat-{line.number:05d}"),
        class_=str(line.row.get("class") or "chat"),
        messages=tuple(messages),
        parameters={k: body[k] for k in PARAMETERS if body.get(k) is not None},
        reference=reference,
        scorers=scorers,
    )
    if problem := case_problem(case):
        raise line.error(problem)
    return case


def _reference(
    said: dict[str, Any], body: dict[str, Any], line: Line
) -> tuple[Any, tuple[str, ...]]:
    calls = said.get("tool_calls")
    if calls:
        return [_call(one, line) for one in calls], ("tool_call",)
    form = body.get("response_format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        return said.get("content"), ("json_schema",)
    return said.get("content"), ("degeneration",)


def _call(value: Any, line: Line) -> dict[str, Any]:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict) or "name" not in function:
        raise line.error("a tool call without a function name")
    arguments = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError as error:
            raise line.error(
                f"arguments of a tool call are no JSON: {error}"
            ) from error
    return {"name": function["name"], "arguments": arguments}
