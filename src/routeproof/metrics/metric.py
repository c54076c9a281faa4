"""What a row of the metric table is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from routeproof.records.columns import Column, Records


@dataclass(frozen=True, slots=True)
class Metric:
    """A number per request, computed from records.

    Attributes:
        name: The field's term, without unit: ``time_to_first_token``.
        unit: ``s``, ``tokens``, ``tokens/s``, ``1`` (a share or ratio).
        better: Which direction is better.
        formula: As printed in the reference page.
        needs: What must be known for it to be known.
        of: ``Records -> Column`` of shape ``(n,)``.
    """

    name: str
    unit: str
    better: Literal["lower", "higher"]
    formula: str
    needs: str
    of: Callable[[Records], Column]
