"""The shape of an interval and of a decided question."""

from typing import Literal

import msgspec


class Interval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An interval estimate.

    Attributes:
        low: Lower limit; ``None`` when unbounded or unknown.
        high: Upper limit; ``None`` when unbounded or unknown.
        level: Two-sided confidence level, 0.9 for a one-sided alpha of 0.05.
        method: Such as ``tango``, ``bca``, ``paired_t``, ``order_statistic``.
    """

    low: float | None
    high: float | None
    level: float
    method: str


class NonInferiority(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The answer to: is a loss larger than the tolerance excluded?

    Attributes:
        decision: ``certified`` (loss > tolerance excluded), ``harmed`` (harm shown and
            not certified, or the whole interval below ``-tolerance``), ``undecided``.
        estimate: Mean difference candidate - baseline; negative is a loss.
        p_value: One-sided, of the null "true loss >= tolerance"; ``None`` if none.
        harm_p_value: One-sided, of the null "no loss".
        n: Independent units (cases or clusters) compared.
        n_needed: Units needed in all to decide at the planned power, if known.
        n_minimum: Fewest units that could certify, with no loss among them at all;
            below it the question is not powered. ``None`` where no such number exists.
        missing: Units without a verdict in both arms; each counted as a loss before
            anything is certified.
    """

    decision: Literal["certified", "harmed", "undecided"]
    estimate: float
    interval: Interval
    tolerance: float
    p_value: float | None
    harm_p_value: float | None
    n: int
    n_needed: int | None
    method: str
    note: str | None = None
    n_minimum: int | None = None
    missing: int = 0
