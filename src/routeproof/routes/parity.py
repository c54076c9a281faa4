"""What must be equal is equal; what changed is what was declared to change."""

from typing import Literal

import msgspec

from routeproof.errors import ParityError
from routeproof.routes.inventory import MALFORMED, Inventory, RouteDiff


class ParityProblem(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One reason why two routes may not be compared.

    Attributes:
        kind: ``undeclared``: they differ in a field that ``changes`` does not name.
            ``contradicted``: an endpoint says otherwise than the file.
            ``invalid``: acceptance is forced or invented.
            ``malformed``: a launch command does not say what it seems to say.
        why: One sentence for people.
    """

    kind: Literal["undeclared", "contradicted", "invalid", "malformed"]
    field: str
    baseline: str | None
    candidate: str | None
    why: str

    def error(self) -> ParityError:
        """The same as an exception, for commands that must stop."""
        return ParityError(self.field, self.baseline, self.candidate)


def parity_problems(found: RouteDiff) -> tuple[ParityProblem, ...]:
    """Every reason why the two routes may not be compared; empty when they may."""
    problems = [
        *_contradicted("baseline", found.baseline),
        *_contradicted("candidate", found.candidate),
        *_malformed("baseline", found.baseline),
        *_malformed("candidate", found.candidate),
    ]
    for change in found.changes:
        if change.change_class == "invalid":
            problems.append(
                ParityProblem(
                    kind="invalid",
                    field=change.field,
                    baseline=change.baseline,
                    candidate=change.candidate,
                    why=f"no verdict is given on forced acceptance; {change.why}",
                )
            )
        elif not change.intended:
            problems.append(
                ParityProblem(
                    kind="undeclared",
                    field=change.field,
                    baseline=change.baseline,
                    candidate=change.candidate,
                    why=f"`{change.field}` differs and is not listed under `changes`: "
                    f"{change.baseline or 'not set'} and "
                    f"{change.candidate or 'not set'} ({change.why})",
                )
            )
    return tuple(problems)


def pointless_changes(found: RouteDiff, changes: tuple[str, ...]) -> tuple[str, ...]:
    """Names under ``changes`` in which the two routes do not differ.

    Where a field cannot be read back this may only mean that nobody knows.
    """
    differing = {change.field for change in found.changes}
    return tuple(
        name
        for name in changes
        if not any(f == name or f.startswith(f"{name}.") for f in differing)
    )


def _malformed(arm: str, inventory: Inventory) -> list[ParityProblem]:
    return [
        ParityProblem(
            kind="malformed",
            field=field.name,
            baseline=field.value if arm == "baseline" else None,
            candidate=field.value if arm == "candidate" else None,
            why=f"{arm}: {field.note}",
        )
        for field in inventory.fields
        if field.name.startswith(MALFORMED)
    ]


def _contradicted(arm: str, inventory: Inventory) -> list[ParityProblem]:
    return [
        ParityProblem(
            kind="contradicted",
            field=field.name,
            baseline=field.declared if arm == "baseline" else None,
            candidate=field.declared if arm == "candidate" else None,
            why=f"{arm}: `{field.name}` is {field.note}",
        )
        for field in inventory.fields
        if field.note is not None and field.note.startswith("declared ")
    ]
