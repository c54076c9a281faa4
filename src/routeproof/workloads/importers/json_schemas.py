"""JSONSchemaBench: real schemas an answer must be valid against."""

from pathlib import Path

import msgspec

from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, Line, read_lines, user


def jsonschemabench(path: Path) -> Imported:
    """Cases of JSONSchemaBench (``id``, ``schema``), the schema asked for as format."""
    needs = ("id", "schema")
    return Imported(
        tuple(_case(line) for line in read_lines(path, "JSONSchemaBench", needs))
    )


def _case(line: Line) -> Case:
    schema = line.row.get("schema")
    if not isinstance(schema, dict | bool):
        raise line.error("`schema` is no JSON Schema")
    shown = msgspec.json.encode(schema).decode()
    return Case(
        id=line.text("id"),
        class_="structured",
        tags={"source": str(line.row.get("source", ""))},
        messages=(
            user(f"Write one JSON value that is valid against this schema:\n{shown}"),
        ),
        parameters={
            "max_tokens": 1024,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            },
        },
        scorers=("json_schema",),
    )
