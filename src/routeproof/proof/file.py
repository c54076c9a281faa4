"""Read a proof file and say clearly what is wrong with it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from routeproof.errors import ConfigError
from routeproof.proof.checks import check_environment, check_proof
from routeproof.proof.nearest import nearest
from routeproof.proof.proof import Proof
from routeproof.proof.yaml_text import Document, Place, key_path, parse, read_text

SCALAR_OR_LIST = frozenset({"concurrency", "request_rate", "cases", "changes"})
"""Keys where one value may stand for a list of one."""


def load_proof(path: Path, *, environ: Mapping[str, str] | None = None) -> Proof:
    """The proof in a YAML file, checked as far as it can be without sending.

    Args:
        path: The file. Paths inside it are relative to its folder.
        environ: When given, variables that the proof names must be set in it. Leave
            it out where nothing will be sent, as when an old run is judged.

    Raises:
        ConfigError: The file, a key, a type or a value is wrong. The message has the
            file, the place and what was expected; ``hint`` has the next act.
    """
    path = Path(path)
    return proof_of(parse(read_text(path), path), path, environ=environ)


def proof_of(
    document: Document, path: Path, *, environ: Mapping[str, str] | None = None
) -> Proof:
    """The proof in an already parsed document; see `load_proof`."""
    values = _lists_of_one(document.values)
    try:
        proof = msgspec.convert(values, Proof)
    except msgspec.ValidationError as error:
        raise _explain(error, document, path) from None
    check_proof(proof, path)
    if environ is not None:
        check_environment(proof, environ, path)
    return proof


def _lists_of_one(values: Any) -> Any:
    if isinstance(values, list):
        return [_lists_of_one(value) for value in values]
    if not isinstance(values, dict):
        return values
    return {
        key: [value]
        if key in SCALAR_OR_LIST and isinstance(value, (str, int, float))
        else _lists_of_one(value)
        for key, value in values.items()
    }


_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<at>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<name>.*)`$")
_REQUIRED = re.compile(r"missing required field `(?P<name>.*)`$")
_TYPE = re.compile(r"^Expected `(?P<wanted>.*)`, got `(?P<got>.*)`$")


def _explain(
    error: msgspec.ValidationError, document: Document, path: Path
) -> ConfigError:
    match = _AT.match(str(error))
    what, at = (match["what"], match["at"] or "") if match else (str(error), "")
    wrong = _TYPE.match(what)
    place = _place(at, document, wrong["wanted"] if wrong else "")
    if unknown := _UNKNOWN.search(what):
        return _unknown_key(unknown["name"], place, document, path)
    line = _line(document, place)
    key = key_path(place) or None
    if required := _REQUIRED.search(what):
        name = required["name"]
        full = key_path((*place, name))
        return ConfigError(
            f"is required and missing{line}",
            path=path,
            key=full,
            hint=f"add `{name}:`" + (f" under `{key}`" if key else ""),
        )
    if wrong:
        return _wrong_type(wrong["wanted"], wrong["got"], place, document, path)
    return ConfigError(f"{what[0].lower()}{what[1:]}{line}", path=path, key=key)


def _place(at: str, document: Document, wanted: str) -> Place:
    """The place msgspec names.

    msgspec writes ``[...]`` for any key of a free mapping; the first such value that
    is not of the wanted type is the one at fault.
    """
    parts = [
        name or (index if index == "..." else int(index))
        for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]", at)
    ]
    if "..." not in parts:
        return tuple(parts)
    for place in document.lines:
        if len(place) == len(parts) and all(
            part in ("...", real) for part, real in zip(parts, place, strict=True)
        ):
            if not _is_a(_value(document, place), wanted):
                return place
    return tuple(parts[: parts.index("...")])


def _is_a(value: Any, wanted: str) -> bool:
    kinds: dict[str, tuple[type, ...]] = {
        "str": (str,),
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "object": (dict,),
        "array": (list,),
        "null": (type(None),),
    }
    names = [name.strip() for name in wanted.split("|")]
    if isinstance(value, bool) and "bool" not in names:
        return False
    return any(isinstance(value, kinds.get(name, ())) for name in names)


def _line(document: Document, place: Place) -> str:
    line = document.lines.get(place)
    return f" (line {line})" if line and place else ""


def _value(document: Document, place: Place) -> Any:
    value: Any = document.values
    for part in place:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _unknown_key(
    name: str, place: Place, document: Document, path: Path
) -> ConfigError:
    known = _known_keys(place)
    near = nearest(name, known, cutoff=0.5)
    elsewhere = _elsewhere(name)
    where = f"`{key_path(place)}`" if place else "the file"
    if elsewhere and nearest(name, known, cutoff=0.8) is None:
        hint = f"`{name}` belongs under {' or '.join(elsewhere[:3])}"
    elif near:
        hint = f"did you mean `{near}`?"
    else:
        hint = f"{where} knows the keys {', '.join(sorted(known))}"
    full = (*place, name)
    return ConfigError(
        f"unknown key{_line(document, full)}", path=path, key=key_path(full), hint=hint
    )


def _known_keys(place: Place) -> list[str]:
    """Keys of the struct at ``place``; empty where the place is no struct."""
    node: inspect.Type | None = inspect.type_info(Proof)
    for part in place:
        node = _child(node, part)
    struct = _struct(node)
    return [f.encode_name for f in struct.fields] if struct else []


def _struct(node: inspect.Type | None) -> inspect.StructType | None:
    if isinstance(node, inspect.UnionType):
        return next((t for t in node.types if isinstance(t, inspect.StructType)), None)
    return node if isinstance(node, inspect.StructType) else None


def _child(node: inspect.Type | None, part: str | int) -> inspect.Type | None:
    struct = _struct(node)
    if struct is not None:
        return next((f.type for f in struct.fields if f.encode_name == part), None)
    if isinstance(node, inspect.VarTupleType):
        return node.item_type
    if isinstance(node, inspect.DictType):
        return node.value_type
    return None


def _elsewhere(name: str) -> list[str]:
    """Places of the file where a key of this name exists."""
    found: list[str] = []

    def walk(node: inspect.Type, place: str) -> None:
        if isinstance(node, inspect.VarTupleType):
            return walk(node.item_type, f"{place}[]")
        struct = _struct(node)
        for f in struct.fields if struct else ():
            if f.encode_name == name:
                found.append(f"`{place}`" if place else "the top level")
            walk(f.type, f"{place}.{f.encode_name}".removeprefix("."))
        return None

    walk(inspect.type_info(Proof), "")
    return found


_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}


def _words(types: str) -> str:
    return " or ".join(_WORDS.get(t.strip(), t.strip()) for t in types.split("|"))


def _wrong_type(
    wanted: str, got: str, place: Place, document: Document, path: Path
) -> ConfigError:
    value = _value(document, place)
    shown = "" if isinstance(value, (dict, list)) or value is None else f" `{value}`"
    hint = None
    if wanted.startswith("str") and got in ("int", "float", "bool"):
        hint = f'put it in quotes: "{value}"' if shown else "put the value in quotes"
    elif wanted.startswith("array"):
        hint = "write a list: [a, b] or one `- item` a line"
    elif wanted.startswith("object"):
        known = _known_keys(place)
        hint = f"indent its keys below it: {', '.join(known)}" if known else None
    elif wanted in ("int", "float", "int | null", "float | null") and got == "str":
        hint = "write the number without quotes and without a unit"
    return ConfigError(
        f"expected {_words(wanted)}, got {_words(got)}{shown}{_line(document, place)}",
        path=path,
        key=key_path(place) or None,
        hint=hint,
    )
