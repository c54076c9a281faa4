"""What was edited in the routes since the last attempt, for the audit and the week."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

NAME = "routes.json"
SHOWN = 24
CHARS = 60
HIDDEN = ("auth", "env")
"""Parts of a route that are never written down: they may hold secrets."""


def changes(
    before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> dict[str, str]:
    """Key path to ``old -> new``, at most 24; empty when there is no past.

    Example:
        >>> changes({"a": {"b": 1}}, {"a": {"b": 2}, "c": None})
        {'a.b': '1 -> 2'}
    """
    if before is None:
        return {}
    old, new = dict(_flat(before)), dict(_flat(after))
    found = {
        key: f"{_shown(old.get(key))} -> {_shown(new.get(key))}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    }
    return dict(list(found.items())[:SHOWN])


def note_routes(folder: Path, routes: Mapping[str, Any]) -> dict[str, str]:
    """What changed against the routes kept in a folder; the new ones are kept then.

    A folder that cannot be written costs the next mark, nothing else.
    """
    path = folder / NAME
    before: dict[str, Any] | None = None
    try:
        before = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        pass
    plain = _without_hidden(routes)
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(plain), indent=2))
    except OSError:
        pass
    return changes(before, plain)


def _without_hidden(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {k: _without_hidden(v) for k, v in value.items() if k not in HIDDEN}


def draft_of(routes: Mapping[str, Any]) -> str | None:
    """The candidate's draft in words, such as ``eagle3 org/draft@rev``."""
    candidate = routes.get("candidate")
    found = candidate.get("speculation") if isinstance(candidate, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    draft = found.get("draft")
    parts = draft if isinstance(draft, Mapping) else {}
    name = f"{found.get('method')} {parts.get('model') or ''}".strip()
    revision = parts.get("revision")
    return f"{name}@{str(revision)[:12]}" if revision else name


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in HIDDEN:
                yield from _flat(inner, f"{at}.{key}" if at else str(key))
    elif value is not None:
        yield at, value


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)[:CHARS]
