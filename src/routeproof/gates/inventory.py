"""Gate 1: is the route written down?"""

from routeproof.gates.evidence import Evidence
from routeproof.gates.fold import gate_result
from routeproof.gates.result import Check, Flag, GateResult, Status
from routeproof.routes.inventory import Inventory

MOVING = frozenset({"main", "master", "head", "latest", "default", "nightly", "dev"})
"""Revision names that mean something else tomorrow."""

TO_VERIFY = (
    "model",
    "revision",
    "tokenizer",
    "engine.name",
    "engine.version",
    "weights",
    "kv_cache",
    "speculation.method",
    "speculation.draft",
    "speculation.draft_tokens",
    "context_limit_tokens",
)
"""Fields, or their first part, that a server can belie: to state them in the proof
file alone is not enough. Hardware, placement and maturity are taken as written."""

_BELOW_MERGED = frozenset({"open_pr", "branch", "private"})


def judge_inventory(evidence: Evidence) -> GateResult:
    """Whether both routes are written down, pinned, paired and real.

    Fails on a moving revision, on a draft whose tokenizer differs from the target's,
    and on synthetic acceptance (then there is no verdict at all). Fields that nobody
    states, and those of ``TO_VERIFY`` that only the proof file states, are
    inconclusive and cap the verdict at pilot; where routeproof launched the engines
    by the command in the proof file, what is declared counts.
    """
    routes = evidence.routes
    if routes is None:
        return GateResult(
            gate="inventory",
            status=Status.NOT_MEASURED,
            reason="the run holds no inventory of its routes",
        )
    arms = (("baseline", routes.baseline), ("candidate", routes.candidate))
    checks = [
        *(_written_down(arm, each, evidence.launch_declared) for arm, each in arms),
        *(_pinned(arm, each) for arm, each in arms),
        _real(evidence),
        *_paired(routes.candidate, routes.is_speculative),
        _maturity(evidence.maturity),
    ]
    return gate_result(
        "inventory",
        checks,
        flags=_flags(checks, evidence),
        passed="every field is declared or read back, and pinned",
    )


def _written_down(arm: str, inventory: Inventory, is_launched: bool) -> Check:
    nobody = _unstated(inventory)
    only_said = [] if is_launched else _only_declared(inventory)
    open_fields = (*nobody, *only_said)
    known = sum(each.value is not None for each in inventory.fields)
    if not open_fields:
        return Check(
            name=f"written_down[{arm}]",
            status=Status.PASSED,
            reason=f"all {known} fields of the {arm} are known",
            n=known,
        )
    return Check(
        name=f"written_down[{arm}]",
        status=Status.INCONCLUSIVE,
        reason=f"unverified on the {arm}: {', '.join(open_fields)}",
        n=known,
        notes=(
            *(f"nobody states {name}" for name in nobody),
            *(f"only the proof file states {name}" for name in only_said),
        ),
    )


def _unstated(inventory: Inventory) -> list[str]:
    """Fields nobody states; a digest of the model makes up for its revision."""
    return [
        name
        for name in inventory.unverified()
        if not (name == "revision" and _digests(inventory))
    ]


def _only_declared(inventory: Inventory) -> list[str]:
    return [
        each.name
        for each in inventory.fields
        if each.known == "declared"
        and each.value is not None
        and any(
            each.name == name or each.name.startswith(f"{name}.") for name in TO_VERIFY
        )
    ]


def _pinned(arm: str, inventory: Inventory) -> Check:
    revisions = {
        each.name: each.value
        for each in inventory.fields
        if each.name.split(".")[-1] == "revision" and each.value is not None
    }
    moving = [f"{k} is {v}" for k, v in revisions.items() if v and v.lower() in MOVING]
    if moving:
        return Check(
            name=f"pinned[{arm}]",
            status=Status.FAILED,
            reason=f"{', '.join(moving)}: a name that moves pins nothing",
        )
    if revisions or _digests(inventory):
        return Check(
            name=f"pinned[{arm}]",
            status=Status.PASSED,
            reason="revisions or digests are pinned",
        )
    return Check(
        name=f"pinned[{arm}]",
        status=Status.INCONCLUSIVE,
        reason=f"neither a revision nor a digest of the {arm}'s model is known",
    )


def _digests(inventory: Inventory) -> list[str]:
    return [
        each.name
        for each in inventory.fields
        if each.name in ("model.digest", "weights.digest", "model_digest")
        and each.value is not None
    ]


def _real(evidence: Evidence) -> Check:
    routes = evidence.routes
    invalid = routes is not None and routes.change_class == "invalid"
    if invalid or evidence.acceptance.is_synthetic:
        return Check(
            name="real_acceptance",
            status=Status.FAILED,
            reason="acceptance is synthetic or forced: the answers are not the model's",
        )
    return Check(
        name="real_acceptance",
        status=Status.PASSED,
        reason="no synthetic or forced acceptance is set",
    )


def _paired(candidate: Inventory, is_speculative: bool) -> list[Check]:
    """Draft and target must split text into the same tokens."""
    values = {each.name: each.value for each in candidate.fields}
    draft = values.get("speculation.draft.model")
    if not is_speculative or draft is None:
        return []
    target = values.get("tokenizer.digest") or values.get("tokenizer.name")
    told = values.get("speculation.draft.tokenizer")
    if told is None or target is None:
        reason = f"the tokenizer of the draft {draft} or of its target is not known"
        return [Check(name="paired", status=Status.INCONCLUSIVE, reason=reason)]
    if told != target:
        reason = f"draft tokenizer {told} differs from the target's {target}"
        return [Check(name="paired", status=Status.FAILED, reason=reason)]
    reason = f"draft and target share the tokenizer {told}"
    return [Check(name="paired", status=Status.PASSED, reason=reason)]


def _maturity(maturity: str | None) -> Check:
    if maturity is None:
        return Check(
            name="maturity",
            status=Status.INCONCLUSIVE,
            reason="nobody states how mature the candidate's runtime is",
        )
    is_low = maturity in _BELOW_MERGED
    return Check(
        name="maturity",
        status=Status.INCONCLUSIVE if is_low else Status.PASSED,
        reason=f"the candidate's runtime is at maturity {maturity}",
    )


def _flags(checks: list[Check], evidence: Evidence) -> tuple[Flag, ...]:
    by_name = {check.name: check.status for check in checks}
    open_fields = any(
        check.status is Status.INCONCLUSIVE and check.name != "maturity"
        for check in checks
    )
    found: tuple[tuple[Flag, bool], ...] = (
        ("synthetic_acceptance", by_name["real_acceptance"] is Status.FAILED),
        ("maturity_low", evidence.maturity in _BELOW_MERGED),
        ("maturity_merged", evidence.maturity == "merged"),
        ("unverified_fields", open_fields),
    )
    return tuple(flag for flag, holds in found if holds)
