"""A route written down field by field, each with how we know it."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from routeproof.proof.route import RouteSpec
from routeproof.routes.fields import (
    AUTO,
    NONE,
    REQUIRED,
    REQUIRED_DRAFT,
    REQUIRED_SPECULATIVE,
    canonical,
    is_compared,
    is_draft_free,
    same,
)
from routeproof.routes.launch_flags import malformed_words
from routeproof.routes.local_files import local_fields
from routeproof.routes.modes import mode_of
from routeproof.routes.option_files import launched_fields
from routeproof.routes.read_back import ReadBack

Known = Literal["declared", "read_back", "unverified"]
"""``read_back``: the live endpoint said so (and agrees with what was declared, if it
was). ``declared``: the proof file says so and the endpoint cannot be asked.
``unverified``: nobody says."""

ChangeClass = Literal["lossless", "lossy", "invalid", "unknown"]


MALFORMED = "observed.malformed_argument"
"""Field that holds an argument of a launch command which is two words in one."""


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field of a route. ``value`` is canonical text, ``None`` when unknown."""

    name: str
    value: str | None
    known: Known
    declared: str | None = None
    read_back: str | None = None
    note: str | None = None


class Inventory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every field of one route. ``digest``: SHA-256 over the sorted known fields."""

    fields: tuple[Field, ...]
    digest: str
    endpoint: str | None = None
    cannot_tell: tuple[str, ...] = ()

    def value(self, name: str) -> str | None:
        """Value of a field, ``None`` when unknown or absent."""
        for field in self.fields:
            if field.name == name:
                return field.value
        return None

    def unverified(self) -> tuple[str, ...]:
        """Names of fields that nobody says."""
        return tuple(f.name for f in self.fields if f.known == "unverified")


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One differing field. ``intended``: listed under ``changes``."""

    field: str
    baseline: str | None
    candidate: str | None
    change_class: ChangeClass
    intended: bool
    why: str


class RouteDiff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The two inventories and what differs. ``change_class`` is the worst one."""

    baseline: Inventory
    candidate: Inventory
    changes: tuple[Change, ...]
    change_class: ChangeClass
    is_speculative: bool
    workload_fingerprint: str | None = None


def take_inventory(spec: RouteSpec, read_back: ReadBack | None) -> Inventory:
    """Write a resolved route down.

    What the endpoint says wins over what was declared; where the two differ, the
    field's note says so and parity fails on it. A launch command counts as
    declared: we start the engine with it, but only the engine knows what it made of
    it. So do the model files it names, where they are on this machine.

    Args:
        spec: A route from `routes.resolve`.
        read_back: What the live endpoint says; ``None`` when it was not asked.
    """
    declared, notes = declared_fields(spec)
    _add_local(declared, notes, local_fields(spec, read_back))
    said = dict(read_back.fields) if read_back else {}
    if read_back and declared.get("model") in read_back.models:
        # The name that is sent is an alias here; the file behind it is compared apart.
        said["model.file"] = said.get("model", "")
        said["model"] = declared["model"]
        if not said["model.file"]:
            del said["model.file"]
    names = sorted({*declared, *said, *_required(declared, said)})
    fields = [
        _field(name, declared.get(name), said.get(name), notes.get(name))
        for name in names
    ]
    mode = mode_of(spec, read_back)
    fields.append(
        Field(
            name="speculation.mode",
            value=mode.mode,
            known="read_back" if mode.from_read_back else "declared",
            note="; ".join(mode.reasons) or None,
        )
    )
    fields.sort(key=lambda field: field.name)
    return Inventory(
        fields=tuple(fields),
        digest=digest(fields),
        endpoint=spec.endpoint,
        cannot_tell=read_back.cannot_tell if read_back else (),
    )


def digest(fields: list[Field] | tuple[Field, ...]) -> str:
    """SHA-256 over the known fields that decide a result, sorted by name."""
    known = {
        field.name: field.value
        for field in fields
        if field.value is not None and is_compared(field.name)
    }
    text = json.dumps(known, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _add_local(
    declared: dict[str, str], notes: dict[str, str], local: Mapping[str, str]
) -> None:
    own_digest = "tokenizer.digest" in declared
    for name, value in local.items():
        if own_digest and name == "speculation.draft.tokenizer":
            # Made another way than the digest in the file, so not to be compared.
            continue
        if name not in declared:
            declared[name], notes[name] = value, "from the model files"


def declared_fields(spec: RouteSpec) -> tuple[dict[str, str], dict[str, str]]:
    """What a proof file says of a route, and notes on fields, both by dotted name."""
    written = _flat(msgspec.to_builtins(spec))
    launched = launched_fields(spec.launch)
    notes = {}
    for name, value in launched.items():
        if _PLACEHOLDER.fullmatch(value) or value.lower() == "auto":
            # Only the engine knows what it made of these.
            continue
        if name not in written:
            written[name] = value
            notes[name] = "from the launch command"
        elif not same(name, written[name], value):
            notes[name] = (
                f"declared {written[name]}, but the launch command says {value}"
            )
    for index, word in enumerate(
        malformed_words(spec.launch.command) if spec.launch else ()
    ):
        name = f"{MALFORMED}.{index}"
        written[name] = word
        notes[name] = f"`{word}` is one argument; write its two words apart"
    return written, notes


_PLACEHOLDER = re.compile(r"\{\w+\}|\$\w+|\$\{\w+\}|\$\(\w+\)")
"""Filled when the engine is launched: ``{model}``, ``$MODEL``, ``$(MODEL)``."""

_GROUPS = ("tokenizer", "engine", "speculation", "hardware", "sampler_defaults")
_PLAIN = (
    "model",
    "revision",
    "weights",
    "kv_cache",
    "attention_backend",
    "context_limit_tokens",
)


def _flat(route: Mapping[str, object]) -> dict[str, str]:
    out: dict[str, str] = {}

    def walk(name: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{name}.{key}", inner)
        elif isinstance(value, bool):
            out[name] = "true" if value else "false"
        elif value is not None:
            out[name] = str(value)

    for name in (*_PLAIN, *_GROUPS):
        walk(name, route.get(name))
    return out


def _required(declared: Mapping[str, str], said: Mapping[str, str]) -> tuple[str, ...]:
    method = said.get("speculation.method") or declared.get("speculation.method")
    if method is None or canonical("speculation.method", method) == NONE:
        return REQUIRED
    if is_draft_free(method):
        return (*REQUIRED, "speculation.draft_tokens")
    return (*REQUIRED, *REQUIRED_SPECULATIVE, *REQUIRED_DRAFT)


def _field(
    name: str, declared: str | None, said: str | None, note: str | None
) -> Field:
    if said is None and declared is None:
        return Field(name=name, value=None, known="unverified", note=note)
    if said is None:
        assert declared is not None
        return Field(
            name=name,
            value=canonical(name, declared),
            known="declared",
            declared=declared,
            note=note,
        )
    if declared is not None and not same(name, declared, said):
        note = f"declared {declared}, but the endpoint says {said}"
    # A hub id says more than the path the files happen to lie at; `auto` says less
    # than what the engine made of it.
    agreed = declared not in (None, AUTO) and same(name, declared or "", said)
    return Field(
        name=name,
        value=canonical(name, declared if agreed and declared else said),
        known="read_back",
        declared=declared,
        read_back=said,
        note=note,
    )
