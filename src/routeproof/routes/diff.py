"""What differs between two routes, and how much it can matter."""

from routeproof.proof.route import RouteSpec
from routeproof.routes.classes import class_of, worst
from routeproof.routes.fields import AUTO, NONE, is_compared, is_draft_free, same
from routeproof.routes.inventory import Change, ChangeClass, Inventory, RouteDiff

_MODE = "speculation.mode"

FOLLOWS = {
    "model.digest": ("weights",),
    "engine.commit": ("engine.version",),
    "tokenizer.vocabulary_size": ("model",),
}
"""Fields that change along with others: requantized weights are another file."""

TELLING = ("speculation.", "launch.", "scheduler.", "prefix_cache")
"""Fields whose absence says something: the engine's default was left as it is."""


def diff(
    baseline: Inventory, candidate: Inventory, candidate_spec: RouteSpec
) -> RouteDiff:
    """Compare two inventories field by field.

    A field that one side does not know is no difference; it is listed as unverified
    in that side's inventory. Speculation is the exception: a route of which nobody
    says that it speculates is taken not to, so that adding it shows as a change.

    Args:
        baseline: The trusted route.
        candidate: The faster one.
        candidate_spec: Its ``changes`` say which differences are intended.
    """
    changes = [
        change
        for name in _names(baseline, candidate)
        if (change := _change(name, baseline, candidate, candidate_spec.changes))
    ]
    changes += _mode_changes(baseline, candidate, candidate_spec.changes)
    return RouteDiff(
        baseline=baseline,
        candidate=candidate,
        changes=tuple(sorted(changes, key=lambda change: change.field)),
        change_class=worst([change.change_class for change in changes]),
        is_speculative=_speculates(candidate),
    )


def is_intended(field: str, changes: tuple[str, ...]) -> bool:
    """Whether ``changes`` names a field or a group it belongs to.

    Example:
        >>> is_intended("speculation.draft.model", ("speculation",))
        True
        >>> is_intended("kv_cache", ("speculation",))
        False
    """
    names = (field, *FOLLOWS.get(field, ()))
    return any(
        each == name or each.startswith(f"{name}.")
        for each in names
        for name in changes
    )


def _speculates(inventory: Inventory) -> bool:
    return (inventory.value("speculation.method") or NONE) != NONE


def _names(baseline: Inventory, candidate: Inventory) -> list[str]:
    names = {f.name for f in (*baseline.fields, *candidate.fields)}
    return sorted(name for name in names if is_compared(name) and name != _MODE)


def _change(
    name: str, baseline: Inventory, candidate: Inventory, intended: tuple[str, ...]
) -> Change | None:
    old, new = baseline.value(name), candidate.value(name)
    if name.startswith(TELLING):
        if name == "speculation.method":
            old, new = old or NONE, new or NONE
        if old == new:
            return None
    elif old is None or new is None:
        return None
    if old is not None and new is not None and _alike(name, old, new):
        return None
    change_class, why = _class_of(name, candidate)
    return Change(
        field=name,
        baseline=old,
        candidate=new,
        change_class=change_class,
        intended=is_intended(name, intended),
        why=why,
    )


def _alike(name: str, old: str, new: str) -> bool:
    """As ``same``, but ``auto`` is what nobody resolved: it equals only itself."""
    return same(name, old, new) and (old == new or AUTO not in (old, new))


def _class_of(name: str, candidate: Inventory) -> tuple[ChangeClass, str]:
    method = candidate.value("speculation.method") or NONE
    if name == "speculation.method" and method != NONE and is_draft_free(method):
        return "lossless", "drafts are copied from the text so far and verified"
    return class_of(name)


def _mode_changes(
    baseline: Inventory, candidate: Inventory, intended: tuple[str, ...]
) -> list[Change]:
    """Lossy and fake modes of speculation.

    A fake makes the comparison invalid on whichever side it stands, also when both
    sides have it.
    """
    modes = {"baseline": baseline.value(_MODE), "candidate": candidate.value(_MODE)}
    notes = {
        "baseline": _note(baseline),
        "candidate": _note(candidate),
    }
    for arm, mode in modes.items():
        if mode == "synthetic":
            return [_mode_change(modes, "invalid", intended, f"{arm}: {notes[arm]}")]
    if modes["candidate"] == "lossy" and modes["baseline"] != "lossy":
        return [_mode_change(modes, "lossy", intended, notes["candidate"])]
    if modes["baseline"] == "lossy" and modes["candidate"] != "lossy":
        return [_mode_change(modes, "lossy", intended, notes["baseline"])]
    return []


def _note(inventory: Inventory) -> str:
    return next((f.note or "" for f in inventory.fields if f.name == _MODE), "")


def _mode_change(
    modes: dict[str, str | None],
    change_class: ChangeClass,
    intended: tuple[str, ...],
    why: str,
) -> Change:
    return Change(
        field=_MODE,
        baseline=modes["baseline"],
        candidate=modes["candidate"],
        change_class=change_class,
        intended=is_intended(_MODE, intended),
        why=why,
    )
