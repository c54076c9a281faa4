"""YAML to plain values, strictly: no duplicate keys, no surprises, known lines.

Scalars follow YAML 1.2 (``yes`` and ``2026-11-30`` are text), since a revision or a
version that turns into a number or a date on the way is a wrong route.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from routeproof.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_NODES = 50_000
MAX_DEPTH = 40

Place = tuple[str | int, ...]

_CORE_SCALARS = (
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("tag:yaml.org,2002:int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        list("-+.0123456789"),
    ),
)


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader with the scalar rules of YAML 1.2 in place of those of 1.1."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, _pattern, _first in _CORE_SCALARS:
    _CoreLoader.add_implicit_resolver(_tag, re.compile(_pattern), _first)


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML mapping as plain values.

    Attributes:
        values: Dicts, lists, strings, numbers, booleans and ``None``.
        lines: 1-based line of every value, by its place.
    """

    values: dict[str, Any]
    lines: dict[Place, int] = field(default_factory=dict)


def read_text(path: Path) -> str:
    """The text of a file a person wrote.

    Raises:
        ConfigError: It is missing, a directory, unreadable, too big or not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            "there is no such file",
            path=path,
            hint="`routeproof init` writes a first proof file",
        ) from None
    except IsADirectoryError:
        raise ConfigError(
            "this is a directory",
            path=path,
            hint=f"name the file inside it, such as {path / 'proof.yaml'}",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot be read ({error.strerror})",
            path=path,
            hint="check the path and the permissions of the file",
        ) from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(
            f"is {len(raw)} bytes long; at most {MAX_BYTES} are read",
            path=path,
            hint="cases belong in JSONL files named under `workload.cases`",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"is not UTF-8 text (byte {error.start})",
            path=path,
            hint="save the file as UTF-8",
        ) from None


def parse(text: str, path: Path) -> Document:
    """The mapping in ``text``, with the line of every value.

    Raises:
        ConfigError: Empty, not YAML, several documents, not a mapping, a duplicate
            key, or nested or repeated beyond reason.
    """
    try:
        root = yaml.compose(text, Loader=_CoreLoader)
    except yaml.YAMLError as error:
        raise _not_yaml(error, text, path) from None
    except RecursionError:
        raise ConfigError("is nested too deeply", path=path) from None
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        raise ConfigError(
            "is empty",
            path=path,
            hint="a proof file needs at least `baseline:` and `candidate:`",
        )
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(
            f"holds a {_kind(root)}, not a mapping of keys to values",
            path=path,
            hint="the first line should look like `baseline:`",
        )
    reader = _Reader(path)
    values = reader.plain(root, ())
    return Document(values, reader.lines)


class _Reader:
    """Turns composed nodes into plain values and remembers lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Place, int] = {}

    def plain(self, node: yaml.Node, place: Place) -> Any:
        self.lines[place] = node.start_mark.line + 1
        # Anchors can make a short file expand without end.
        if len(self.lines) > MAX_NODES or len(place) > MAX_DEPTH:
            raise ConfigError(
                "is nested or repeated beyond reason",
                path=self.path,
                key=key_path(place[:3]),
                hint="write repeated parts out, or use `like: baseline`",
            )
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise self._unknown_tag(node, place)
        if isinstance(node, yaml.MappingNode) and node.tag.endswith(":map"):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag.endswith(":seq"):
            return [self.plain(n, (*place, i)) for i, n in enumerate(node.value)]
        return self._scalar(node, place)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(
                    f"line {key_node.start_mark.line + 1}: a key must be plain text",
                    path=self.path,
                    key=key_path(place) or None,
                )
            key = str(key_node.value)
            if key in out:
                first = self.lines[(*place, key)]
                raise ConfigError(
                    f"is given twice, on lines {first} and "
                    f"{key_node.start_mark.line + 1}",
                    path=self.path,
                    key=key_path((*place, key)),
                    hint="keep one of the two",
                )
            out[key] = self.plain(value_node, (*place, key))
        return out

    def _unknown_tag(self, node: yaml.Node, place: Place) -> ConfigError:
        return ConfigError(
            f"line {node.start_mark.line + 1}: the YAML tag {node.tag} is not "
            "understood",
            path=self.path,
            key=key_path(place) or None,
            hint="write the value plainly, without `!`",
        )

    def _scalar(self, node: yaml.Node, place: Place) -> Any:
        kind = node.tag.rsplit(":", 1)[-1]
        if not isinstance(node, yaml.ScalarNode) or kind not in _READ:
            raise self._unknown_tag(node, place)
        try:
            return _READ[kind](node.value)
        except ValueError:
            raise self._unknown_tag(node, place) from None


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


_READ: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": _float,
    "bool": lambda text: text.lower() == "true",
    "null": lambda text: None,
    "str": str,
}


def key_path(place: Place) -> str:
    """A place as people write it: ``quality[0].tolerance``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _kind(node: yaml.Node) -> str:
    return "list" if isinstance(node, yaml.SequenceNode) else "single value"


def _not_yaml(error: yaml.YAMLError, text: str, path: Path) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else None
    lines = text.splitlines()
    hint = "check the indentation and quotes of this line"
    if (
        mark
        and mark.line < len(lines)
        and lines[mark.line][: mark.column + 1].count("\t")
    ):
        hint = "YAML is indented with spaces; replace the tab at the start of this line"
    if problem and "single document" in str(error):
        hint = "a proof file holds one document; remove the `---` separators"
    return ConfigError(
        f"is not valid YAML: {problem or error}", path=path, key=where, hint=hint
    )
