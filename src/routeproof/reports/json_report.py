"""The judgement as one JSON document, and the schema of that document."""

from typing import Any

import msgspec

from routeproof.reports.judgement import Judgement, encode


def render(judgement: Judgement) -> str:
    """The whole judgement, keys sorted; the same bytes for the same judgement."""
    return encode(judgement).decode() + "\n"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what :func:`render` writes."""
    schema = msgspec.json.schema(Judgement)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routeproof judgement",
        **schema,
    }
