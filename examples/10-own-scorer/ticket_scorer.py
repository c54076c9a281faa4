"""A scorer of our own: does the answer name the right ticket?"""

import re

from routeproof.scorers.answered import answered, verdict
from routeproof.scorers.score import Score, ScoredAnswer, Scorer
from routeproof.workloads.case import Case


def _ticket(case: Case, answer: ScoredAnswer) -> Score:
    found = re.findall(r"\b[A-Z]{2,5}-\d+\b", answer.text)
    is_right = found == [case.reference]
    return verdict(is_right, " ".join(found) or None, f"wanted {case.reference}")


def plugin(doors) -> None:
    """Called by routeproof with the doors to its tables."""
    doors.add_scorer(
        Scorer(
            name="ticket",
            version=1,
            binary=True,
            of=answered(_ticket),
            what="the answer names the one right ticket and no other",
        )
    )
