"""The pairing lock: which target and which draft were qualified together.

A draft is trained against one set of target weights, one tokenizer and one template.
Upgrading one side alone keeps the answers right and quietly takes the speed away, so
the pair is written down in ``routeproof.lock`` beside the proof file.
"""

import json
import os
from pathlib import Path
from typing import Literal

import msgspec

from routeproof.errors import ConfigError, FormatError
from routeproof.routes.fields import NONE, same
from routeproof.routes.inventory import Inventory

FILE_NAME = "routeproof.lock"
SCHEMA = "routeproof.lock/1"

TARGET = ("model", "revision", "weights")
DRAFT = (
    "speculation.draft.model",
    "speculation.draft.revision",
    "speculation.draft.weights",
)
SHARED = (
    "tokenizer.name",
    "tokenizer.revision",
    "tokenizer.digest",
    "tokenizer.vocabulary_size",
    "tokenizer.chat_template_digest",
    "engine.name",
    "engine.version",
    "speculation.method",
    "speculation.draft_tokens",
)


class PairingLock(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A qualified pair. Each part maps a route field to its value.

    Attributes:
        target: Model, revision and weights.
        draft: The same of the draft model.
        shared: Tokenizer, template, engine, method and draft length.
        qualified: When and by which run, as text; ``None`` for a lock by hand.
    """

    schema: str = SCHEMA
    target: dict[str, str] = {}
    draft: dict[str, str] = {}
    shared: dict[str, str] = {}
    qualified: str | None = None


class LockProblem(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One way in which a route is not the locked pair.

    Attributes:
        kind: ``one_sided``: only the target or only the draft changed.
            ``new_pair``: both changed. ``surroundings``: tokenizer, template, engine
            or draft length changed.
    """

    kind: Literal["one_sided", "new_pair", "surroundings"]
    field: str
    locked: str | None
    now: str | None
    why: str


def lock_of(
    inventory: Inventory, *, qualified: str | None = None
) -> PairingLock | None:
    """The lock of a route; ``None`` for a route without a draft model."""
    if (inventory.value("speculation.method") or NONE) == NONE:
        return None
    if inventory.value("speculation.draft.model") is None:
        return None

    def part(names: tuple[str, ...]) -> dict[str, str]:
        return {n: value for n in names if (value := inventory.value(n)) is not None}

    return PairingLock(
        target=part(TARGET),
        draft=part(DRAFT),
        shared=part(SHARED),
        qualified=qualified,
    )


def lock_problems(locked: PairingLock, now: PairingLock) -> tuple[LockProblem, ...]:
    """What changed since the pair was locked; empty when nothing did.

    A field that one side does not know is no change.
    """
    target = _changed(locked.target, now.target)
    draft = _changed(locked.draft, now.draft)
    kind: Literal["one_sided", "new_pair"] = (
        "new_pair" if target and draft else "one_sided"
    )
    why = {
        ("one_sided", "target"): "the target was changed and its draft was not: a "
        "draft made for other weights is accepted less, without any error",
        ("one_sided", "draft"): "the draft was changed and its target was not",
        ("new_pair", "target"): "this pair was not qualified together",
        ("new_pair", "draft"): "this pair was not qualified together",
    }
    found = [
        LockProblem(kind=kind, field=name, locked=old, now=new, why=why[(kind, side)])
        for side, changes in (("target", target), ("draft", draft))
        for name, old, new in changes
    ]
    found += [
        LockProblem(
            kind="surroundings",
            field=name,
            locked=old,
            now=new,
            why="acceptance was qualified with another value",
        )
        for name, old, new in _changed(locked.shared, now.shared)
    ]
    return tuple(found)


def check_lock(path: Path, inventory: Inventory) -> tuple[LockProblem, ...]:
    """Problems of a route against the lock file at ``path``.

    A missing file is no problem: nothing has been locked yet.

    Raises:
        ConfigError: The file is broken, or the pair was upgraded on one side only.
    """
    now = lock_of(inventory)
    if now is None or not path.exists():
        return ()
    problems = lock_problems(read_lock(path), now)
    for problem in problems:
        if problem.kind == "one_sided":
            raise ConfigError(
                f"{problem.why}: locked {problem.locked}, now {problem.now}",
                path=path,
                key=problem.field,
                hint="upgrade the other side as well, or qualify the new pair and "
                "write the lock anew",
            )
    return problems


def read_lock(path: Path) -> PairingLock:
    """The lock in a file.

    Raises:
        FormatError: Not readable, not a lock, or of an unknown version.
    """
    try:
        lock = msgspec.json.decode(path.read_bytes(), type=PairingLock)
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror})", path=path) from None
    except msgspec.MsgspecError as error:
        raise FormatError(
            f"is not a pairing lock: {error}",
            path=path,
            hint="delete it and write it anew from a qualified run",
        ) from None
    if lock.schema != SCHEMA:
        raise FormatError(f"has the schema {lock.schema}, not {SCHEMA}", path=path)
    return lock


def write_lock(path: Path, lock: PairingLock) -> None:
    """Write a lock, whole or not at all; keys sorted, so that diffs are small.

    Raises:
        ConfigError: The file cannot be written.
    """
    text = json.dumps(msgspec.to_builtins(lock), indent=2, sort_keys=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(f"{text}\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigError(f"cannot be written ({error.strerror})", path=path) from None


def _changed(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, str, str]]:
    return [
        (name, old[name], new[name])
        for name in old
        if name in new and not same(name, old[name], new[name])
    ]
