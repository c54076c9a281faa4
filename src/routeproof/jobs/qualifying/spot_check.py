"""Which cases a change needs: all of them, or a spot check where it claims no loss.

A lossless change (a draft, a prefix cache) claims the same answers, so a smaller sample
with the same tests and the same veto will do. Everything else, what nobody knows
included, gets the full plan.
"""

from collections.abc import Sequence

import numpy as np

from routeproof.gates.evidence import Agreed
from routeproof.gates.questions import Question, questions
from routeproof.gates.slices import case_facts
from routeproof.jobs.planning.questions import cases_of, pairs_of
from routeproof.proof.policy import PolicySpec
from routeproof.routes.classes import RANK
from routeproof.routes.inventory import ChangeClass, RouteDiff
from routeproof.workloads.case import Case

FLIPS = 0.01
"""Share of verdicts a lossless change is expected to flip (numerical near ties)."""
LEAST = 100
"""Cases of a spot check at least: all-equal texts then exclude 3 % of real
divergences."""


def change_class_of(found: RouteDiff, declared: Sequence[str]) -> ChangeClass:
    """The class of a change; ``unknown`` where a declared change was not seen.

    A field that only one side states is no difference in the diff, and what nobody can
    see may be lossy.
    """
    seen = [change.field for change in found.changes]
    for name in declared:
        if not any(field == name or field.startswith(f"{name}.") for field in seen):
            return max(found.change_class, "unknown", key=lambda each: RANK[each])
    return found.change_class


def is_spot_check(policy: PolicySpec, change_class: ChangeClass) -> bool:
    """Whether a change gets the smaller sample.

    ``policy.plan`` decides; by default the class of the change does. A run that stops
    as soon as it is decided needs no smaller sample.
    """
    if policy.until_decided is not None or policy.plan == "full":
        return False
    return policy.plan == "spot_check" or change_class == "lossless"


def spot_checked(
    cases: Sequence[Case], agreed: Agreed, *, seed: int
) -> tuple[Case, ...]:
    """The cases of a spot check, in their original order.

    Every required question keeps as many of its cases as certify its tolerance at the
    planned power when ``FLIPS`` of them flip, and every required class its minimum.

    Args:
        cases: All cases.
        agreed: The questions, with error rate and power.
        seed: Decides which cases.
    """
    facts = case_facts(cases, {}, {})
    asked = [q for q in questions(agreed, facts) if q.is_required]
    order = np.random.Generator(np.random.PCG64([seed, 0x5B07])).permutation(len(cases))
    shuffled = [cases[i] for i in order.tolist()]
    chosen: set[str] = set()
    # Slices first: what they take counts for the questions about everything.
    for question in sorted(asked, key=lambda q: -len(q.slice)):
        own = cases_of(question, shuffled)
        wanted = _wanted(question, agreed)
        have = sum(case.id in chosen for case in own)
        further = [case.id for case in own if case.id not in chosen]
        chosen.update(further[: max(0, wanted - have)])
    further = [case.id for case in shuffled if case.id not in chosen]
    chosen.update(further[: max(0, LEAST - len(chosen))])
    clusters = {c.cluster for c in cases if c.cluster and c.id in chosen}
    return tuple(c for c in cases if c.id in chosen or c.cluster in clusters)


def _wanted(question: Question, agreed: Agreed) -> int:
    policy = agreed.policy
    if question.tolerance == 0:
        return max(LEAST, question.pairs_required or 0)
    needed = pairs_of(FLIPS, question.tolerance, policy.alpha, policy.power)
    return max(needed, question.pairs_required or 0)
