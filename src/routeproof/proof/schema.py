"""The JSON Schema of a proof file, for editors."""

from typing import Any

import msgspec

from routeproof.proof.file import SCALAR_OR_LIST
from routeproof.proof.proof import Proof


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a proof file, with every default.

    Where one value may stand for a list of one, the schema allows both.
    """
    schema = msgspec.json.schema(Proof)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "routeproof proof file"
    for definition in schema.get("$defs", {}).values():
        for name, field in definition.get("properties", {}).items():
            if name in SCALAR_OR_LIST and field.get("type") == "array":
                default = field.pop("default", None)
                one = dict(field["items"])
                definition["properties"][name] = {"anyOf": [one, field]}
                if default is not None:
                    definition["properties"][name]["default"] = list(default)
    return schema
