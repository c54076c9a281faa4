"""The table of constraints: name to check.

Names and arguments are those of IFEval (Zhou et al. 2023) and its multilingual
extension, so that their files can be used as they are. The checks are our own.
"""

from collections.abc import Callable

from routeproof.scorers.constraint_content import CONTENT
from routeproof.scorers.constraint_form import FORM
from routeproof.scorers.constraint_length import LENGTH, ConstraintProblem
from routeproof.scorers.constraint_letters import LETTERS

CONSTRAINTS: dict[str, Callable[..., bool]] = {**LENGTH, **CONTENT, **FORM, **LETTERS}

__all__ = ["CONSTRAINTS", "ConstraintProblem"]
